#include "memory.h"

#include <algorithm>

#include "ops/value.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

// Calls `fn` with the place of each element in memory, in row-major order.
template <class F>
void for_each_place(const ShapeEnv& env, const Tensor& t, F fn) {
  std::vector<int64_t> sizes = hints(env, t.type->sizes), strides = hints(env, t.type->strides);
  std::vector<int64_t> at(sizes.size(), 0);
  for (int64_t s : sizes)
    if (s == 0) return;
  while (true) {
    int64_t place = t.offset;
    for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
    fn(place);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

uint8_t* address(const Tensor& t, int64_t place) {
  int64_t at = place * static_cast<int64_t>(size_of(t.type->dtype));
  FXJIT_CHECK(at >= 0 && at + static_cast<int64_t>(size_of(t.type->dtype)) <= static_cast<int64_t>(t.memory->size()),
              "an element lies outside of its memory");
  return t.memory->data() + at;
}

}  // namespace

std::vector<int64_t> hints(const ShapeEnv& env, const std::vector<Dim>& dims) {
  std::vector<int64_t> out;
  for (Dim d : dims) out.push_back(env.hint(d));
  return out;
}

Tensor allocate(const ShapeEnv& env, const TensorTypePtr& type) {
  Tensor t{type, std::make_shared<std::vector<uint8_t>>(), 0};
  int64_t last = 0;
  std::vector<int64_t> sizes = hints(env, type->sizes), strides = hints(env, type->strides);
  for (size_t d = 0; d < sizes.size(); ++d) last += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
  t.memory->assign(static_cast<size_t>(last + 1) * size_of(type->dtype), 0xEE);
  return t;
}

std::vector<double> read(const ShapeEnv& env, const Tensor& t) {
  std::vector<double> out;
  for_each_place(env, t, [&](int64_t place) {
    ops::Value v = ops::load(t.type->dtype, address(t, place));
    out.push_back(is_floating(t.type->dtype) ? v.f() : static_cast<double>(v.i()));
  });
  return out;
}

void write(const ShapeEnv& env, const Tensor& t, const std::vector<double>& values) {
  size_t i = 0;
  for_each_place(env, t, [&](int64_t place) {
    ops::Value v = ops::cast(DType::Float64, t.type->dtype, ops::Value::of(values[i++]));
    ops::store(t.type->dtype, address(t, place), v);
  });
}

}  // namespace fxjit::inline v0::passes
