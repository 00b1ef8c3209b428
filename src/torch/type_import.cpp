#include "torch/type_import.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "torch/dtype.h"
#include "torch/dual.h"
#include "torch/tensor_info.h"

namespace fxjit::inline v0::torch_ {
namespace {

// Dimensions from the innermost outwards: by stride, those of one element first, later ones first.
std::vector<size_t> inner_to_outer(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (strides[a] != strides[b]) return strides[a] < strides[b];
    return sizes[a] == 1 && sizes[b] != 1;
  });
  return order;
}

std::vector<Dim> stride_class(ShapeEnv& env, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              std::span<const Dim> dims, int32_t input, bool dynamic) {
  std::vector<Dim> out(sizes.size());
  Dim expected = env.constant(1);
  for (size_t d : inner_to_outer(sizes, strides)) {
    if (strides[d] == 0) {
      out[d] = env.constant(0);
      continue;
    }
    if (strides[d] == env.hint(expected)) {
      out[d] = expected;
    } else if (dynamic) {
      out[d] = env.symbol({SymSource::Stride, input, static_cast<int32_t>(d)}, strides[d]);
    } else {
      out[d] = env.constant(strides[d]);
    }
    // An empty dimension counts as one element, as in the strides of at::empty.
    if (sizes[d] != 0) expected = env.mul(out[d], dims[d]);
  }
  return out;
}

bool is_supported_key(c10::DispatchKeySet keys, std::string* reason) {
  using K = c10::DispatchKey;
  struct Refused {
    K key;
    const char* reason;
  };
  static const Refused refused[] = {
      {K::Python, "a tensor subclass"},
      {K::NestedTensor, "a nested tensor"},
      {K::Conjugate, "a lazily conjugated tensor"},
      {K::Negative, "a lazily negated tensor"},
      {K::ZeroTensor, "a zero tensor of forward differentiation"},
      {K::FuncTorchBatched, "a tensor of functorch"},
      {K::FuncTorchGradWrapper, "a tensor of functorch"},
      {K::Functionalize, "a functional tensor"},
      {K::Named, "a tensor with named dimensions"},
  };
  for (const Refused& r : refused) {
    if (!keys.has(r.key)) continue;
    *reason = r.reason;
    return false;
  }
  return true;
}

}  // namespace

std::string unsupported_reason(const at::Tensor& t) {
  if (!t.defined()) return "an undefined tensor";
  std::string reason;
  if (!is_supported_key(t.key_set(), &reason)) return reason;
  if (!t.device().is_cpu()) return "a tensor on device " + t.device().str();
  if (t.layout() != c10::Layout::Strided) return "a tensor whose layout is not strided";
  if (t.is_quantized()) return "a quantized tensor";
  if (!to_dtype(t.scalar_type())) return std::string("a tensor of type ") + c10::toString(t.scalar_type());
  if (t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return "a tensor with symbolic sizes";
  if (!t.has_storage()) return "a tensor without storage";
  if (is_dual(t.unsafeGetTensorImpl())) return "a dual tensor of forward differentiation";
  return "";
}

TensorInfo describe(const at::Tensor& t) {
  TensorInfo info;
  info.dtype = t.scalar_type();
  info.device = t.device();
  info.unsupported = unsupported_reason(t);
  info.supported = info.unsupported.empty();
  if (!info.supported) return info;
  info.sizes = t.sizes().vec();
  info.strides = t.strides().vec();
  info.storage_offset = t.storage_offset();
  info.requires_grad = t.requires_grad();
  return info;
}

TensorTypePtr import_type(ShapeEnv& env, const TensorInfo& info, int32_t input, std::span<const uint8_t> dynamic) {
  auto type = std::make_shared<TensorType>();
  type->dtype = *to_dtype(info.dtype);
  type->device = device_kind(info.device);
  type->requires_grad = info.requires_grad;
  bool any = false;
  for (size_t d = 0; d < info.sizes.size(); ++d) {
    bool symbolic = d < dynamic.size() && dynamic[d];
    any |= symbolic;
    type->sizes.push_back(symbolic ? env.symbol({SymSource::Size, input, static_cast<int32_t>(d)}, info.sizes[d])
                                   : env.constant(info.sizes[d]));
  }
  type->strides = stride_class(env, info.sizes, info.strides, type->sizes, input, any);
  return type;
}

TensorTypePtr import_type(ShapeEnv& env, const at::Tensor& t, int32_t input, std::span<const uint8_t> dynamic) {
  return import_type(env, describe(t), input, dynamic);
}

}  // namespace fxjit::inline v0::torch_
