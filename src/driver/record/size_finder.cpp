#include "driver/record/size_finder.h"

namespace fxjit::inline v0::driver {

void SizeFinder::sizes_of(torch_::ValueId value, std::vector<Size>& out) const {
  const auto& v = a_.value(value).info.sizes;
  const auto& w = b_.value(value).info.sizes;
  if (v.size() != w.size()) return;
  for (size_t d = 0; d < v.size(); ++d) out.push_back({value, static_cast<int64_t>(d), v[d], w[d]});
}

fx::Argument SizeFinder::node(const Size& s) {
  fx::Node*& n = nodes_[{s.value, s.dim}];
  if (!n) n = graph_.call_method("size", fx::Argument::tuple({node_of_(s.value), s.dim}));
  return n;
}

fx::Argument SizeFinder::compute(const char* function, const fx::Argument& x, const fx::Argument& y) {
  return graph_.call_function(fx::builtin_function(function), fx::Argument::tuple({x, y}));
}

std::optional<fx::Argument> SizeFinder::equal_size(std::span<const Size> sizes, int64_t v, int64_t w, bool* ambiguous) {
  const Size* found = nullptr;
  for (const Size& s : sizes) {
    if (s.v != v || s.w != w) continue;
    // Equal sizes of two tensors belong together; two sizes of one input may part at the next call.
    if (found && found->value == s.value && a_.value(s.value).origin == torch_::Origin::Input) *ambiguous = true;
    if (!found) found = &s;
  }
  if (!found) return std::nullopt;
  return node(*found);
}

// Neighbouring sizes: what flatten and view make one.
std::optional<fx::Argument> SizeFinder::product(std::span<const Size> sizes, int64_t v, int64_t w) {
  for (size_t first = 0; first < sizes.size(); ++first) {
    int64_t pv = sizes[first].v, pw = sizes[first].w;
    for (size_t last = first + 1; last < sizes.size() && sizes[last].value == sizes[first].value; ++last) {
      pv *= sizes[last].v;
      pw *= sizes[last].w;
      if (pv != v || pw != w) continue;
      fx::Argument p = node(sizes[first]);
      for (size_t i = first + 1; i <= last; ++i) p = compute("_operator.mul", p, node(sizes[i]));
      return p;
    }
  }
  return std::nullopt;
}

std::optional<fx::Argument> SizeFinder::with_constant(std::span<const Size> sizes, int64_t v, int64_t w) {
  for (const Size& s : sizes) {
    if (s.v == s.w || s.v == 0 || s.w == 0) continue;
    if (v % s.v == 0 && w % s.w == 0 && v / s.v == w / s.w) return compute("_operator.mul", node(s), v / s.v);
    if (v != 0 && w != 0 && s.v % v == 0 && s.w % w == 0 && s.v / v == s.w / w)
      return compute("_operator.floordiv", node(s), s.v / v);
    if (v - s.v == w - s.w) return compute("_operator.add", node(s), v - s.v);
  }
  return std::nullopt;
}

std::optional<fx::Argument> SizeFinder::find(int64_t v, int64_t w, std::span<const torch_::ValueId> operands,
                                             bool* ambiguous) {
  std::vector<Size> near, inputs;
  for (torch_::ValueId id : operands) sizes_of(id, near);
  for (torch_::ValueId id : a_.recorder->inputs()) sizes_of(id, inputs);
  if (auto e = equal_size(near, v, w, ambiguous)) return e;
  if (auto e = equal_size(inputs, v, w, ambiguous)) return e;
  if (auto e = product(near, v, w)) return e;
  if (auto e = product(inputs, v, w)) return e;
  if (auto e = with_constant(near, v, w)) return e;
  return with_constant(inputs, v, w);
}

}  // namespace fxjit::inline v0::driver
