// x[...]: torch's own C++ indexing, which has the rules of its Python indexing.
#include <ATen/TensorIndexing.h>
#include <ATen/core/Tensor.h>

#include "fxjit/errors.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Kind = fx::Value::Kind;
using at::indexing::TensorIndex;

std::optional<c10::SymInt> bound(const fx::Value& v) {
  if (v.is_none()) return std::nullopt;
  if (v.is_int()) return c10::SymInt(v.as_int());
  if (at::Tensor t = as_tensor(v); t.defined()) return c10::SymInt(t.item<int64_t>());
  throw TypeError("slice indices must be integers or None or have an __index__ method");
}

TensorIndex one_index(const fx::Value& v) {
  if (v.is_none()) return TensorIndex(at::indexing::None);
  if (v.is(Kind::Ellipsis)) return TensorIndex(at::indexing::Ellipsis);
  if (v.is_bool()) return TensorIndex(v.as_bool());
  if (v.is_int()) return TensorIndex(v.as_int());
  if (v.is(Kind::Slice)) return TensorIndex(at::indexing::Slice(bound(v[0]), bound(v[1]), bound(v[2])));
  if (at::Tensor t = as_tensor(v); t.defined()) return TensorIndex(std::move(t));
  throw TypeError("a tensor cannot be indexed with a " + v.type_name() +
                  " here; sequences of ints go through a tensor");
}

}  // namespace

fx::Value get_item(const fx::Value& tensor, const fx::Value& index) {
  std::vector<TensorIndex> indices;
  if (index.is(Kind::Tuple)) {
    for (const fx::Value& i : index.items()) indices.push_back(one_index(i));
  } else {
    indices.push_back(one_index(index));
  }
  return from_tensor(as_tensor(tensor).index(indices));
}

}  // namespace fxjit::inline v0::torch_
