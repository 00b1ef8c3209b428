// x[...] with torch's Python rules: ints select, slices slice, None adds a dimension, tensors gather.
#include <ATen/core/Tensor.h>

#include <limits>

#include "fxjit/errors.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Kind = fx::Value::Kind;

fx::Value call(std::string_view name, std::initializer_list<fx::Value> args) {
  return *call_overloaded(name, std::span(args.begin(), args.size()), {});
}

int64_t bound(const fx::Value& v, int64_t otherwise) {
  if (v.is_none()) return otherwise;
  if (v.is_int()) return v.as_int();
  throw TypeError("slice indices must be integers or None");
}

bool is_mask(const at::Tensor& t) { return t.scalar_type() == at::kBool || t.scalar_type() == at::kByte; }

class Indexer {
 public:
  explicit Indexer(fx::Value self) : result_(std::move(self)) {}

  fx::Value run(std::span<const fx::Value> indices) {
    const int64_t specified = count(indices);
    const int64_t rank = as_tensor(result_).dim();
    if (specified > rank)
      throw IndexError("too many indices for tensor of dimension " + std::to_string(rank));
    bool expanded = false;
    for (const fx::Value& i : indices) {
      if (i.is(Kind::Ellipsis)) {
        if (!expanded) dim_ += rank - specified;
        expanded = true;
      } else {
        one(i);
      }
    }
    if (!gathers_) return result_;
    return call("index", {result_, fx::Value::list(gather_)});
  }

 private:
  static int64_t count(std::span<const fx::Value> indices) {
    int64_t n = 0;
    for (const fx::Value& i : indices) {
      if (i.is_none() || i.is(Kind::Ellipsis) || i.is_bool()) continue;
      const at::Tensor t = as_tensor(i);
      n += t.defined() && is_mask(t) ? t.dim() : 1;
    }
    return n;
  }

  void one(const fx::Value& i) {
    if (i.is_int()) {
      const at::Tensor t = as_tensor(result_);
      const int64_t size = t.size(dim_);
      if (i.as_int() < -size || i.as_int() >= size)
        throw IndexError("index " + std::to_string(i.as_int()) + " is out of bounds for dimension " +
                         std::to_string(dim_) + " with size " + std::to_string(size));
      result_ = call("select", {result_, dim_, i});
    } else if (i.is(Kind::Slice)) {
      slice(i);
    } else if (i.is_none()) {
      result_ = call("unsqueeze", {result_, dim_++});
    } else if (as_tensor(i).defined()) {
      gather(i);
    } else {
      throw NotImplementedError("a tensor cannot be indexed with " + i.repr() + " here");
    }
  }

  void slice(const fx::Value& s) {
    const int64_t step = bound(s[2], 1);
    if (step <= 0) throw ValueError("step must be greater than zero");
    if (!(s[0].is_none() && s[1].is_none() && step == 1))
      result_ = call("slice", {result_, dim_, bound(s[0], 0), bound(s[1], std::numeric_limits<int64_t>::max()), step});
    else if (as_tensor(result_).dim() > 0)
      result_ = call("alias", {result_});
    ++dim_;
  }

  void gather(const fx::Value& index) {
    gather_.resize(static_cast<size_t>(dim_));  // None for the dimensions before
    gather_.push_back(index);
    const at::Tensor t = as_tensor(index);
    dim_ += is_mask(t) ? std::max<int64_t>(t.dim(), 1) : 1;
    gathers_ = true;
    // A mask takes several dimensions of the tensor but one place in the list.
    for (int64_t d = 1; is_mask(t) && d < t.dim(); ++d) skipped_ += 1;
    if (skipped_) dim_ -= skipped_, skipped_ = 0;
  }

  fx::Value result_;
  int64_t dim_ = 0;
  std::vector<fx::Value> gather_;
  bool gathers_ = false;
  int64_t skipped_ = 0;
};

}  // namespace

fx::Value get_item(const fx::Value& tensor, const fx::Value& index) {
  if (index.is(Kind::Tuple)) return Indexer(tensor).run(index.items());
  if (index.is(Kind::List)) throw NotImplementedError("a tensor cannot be indexed with a list here; use a tensor");
  const fx::Value one[] = {index};
  return Indexer(tensor).run(one);
}

}  // namespace fxjit::inline v0::torch_
