#include "memory.h"

#include <cmath>

namespace fxjit::test {

using kernel::StrideClass;

namespace {

// Mostly moderate numbers, some specials.
ops::Value random_value(DType t, std::mt19937& random) {
  if (t == DType::Bool) return ops::Value::of(static_cast<int64_t>(random() & 1));
  if (!is_floating(t)) return ops::round_to(t, ops::Value::of(static_cast<int64_t>(random() % 4001) - 2000));
  return ops::round_to(t, ops::Value::of((static_cast<double>(random()) / 4294967296.0 - 0.5) * 8));
}

}  // namespace

Problem make_problem(const kernel::Kernel& k, const std::vector<int64_t>& extents, const std::vector<uint64_t>& scalars,
                     size_t offset, int64_t spread, unsigned seed) {
  std::mt19937 random(seed);
  Problem p{k, extents, {}, scalars, {}};
  for (const kernel::Buffer& b : k.buffers) {
    std::vector<int64_t> strides(extents.size(), 0);
    int64_t next = 1;
    // The Unit axis first, wherever it is, then the others from the last to the first.
    for (size_t a = 0; a < extents.size(); ++a) {
      if (b.strides[a] == StrideClass::Unit) strides[a] = 1, next = std::max<int64_t>(1, extents[a]);
    }
    bool first = true;
    for (size_t a = extents.size(); a-- > 0;) {
      if (b.strides[a] != StrideClass::Any) continue;
      strides[a] = first ? next * spread : next;
      first = false;
      next = strides[a] * std::max<int64_t>(1, extents[a]);
    }
    p.strides.insert(p.strides.end(), strides.begin(), strides.end());
    bool empty = false;
    for (size_t a = 0; a < extents.size(); ++a) empty |= extents[a] == 0 && b.strides[a] != StrideClass::Zero;
    p.blocks.emplace_back(b.dtype, empty ? 0 : next, offset);
    Block& block = p.blocks.back();
    for (size_t i = 0; i < block.size / size_of(b.dtype); ++i) {
      ops::store(b.dtype, block.data() + i * size_of(b.dtype), random_value(b.dtype, random));
    }
  }
  return p;
}

bool equal(DType t, ops::Value a, ops::Value b) {
  if (is_floating(t) && a.f() != a.f()) return b.f() != b.f();
  return a == b;
}

Same within(double relative, double absolute) {
  return [=](DType t, ops::Value expected, ops::Value got) {
    if (!is_floating(t)) return expected == got;
    const double x = expected.f(), y = got.f();
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    const double half = t == DType::Float16 ? 0x1p-10 : t == DType::BFloat16 ? 0x1p-7 : 0;
    const double tiny = t == DType::Float16 ? 0x1p-24 : 0;
    return std::fabs(x - y) <= (relative + half) * std::fabs(x) + absolute + tiny;
  };
}

void expect_agreement(const Problem& p, const Compiled& c, const Same& same, int cuts, const std::string& what) {
  std::vector<Block> expected = p.blocks, got = p.blocks;
  std::vector<void*> expected_pointers, got_pointers;
  for (Block& b : expected) expected_pointers.push_back(b.data());
  for (Block& b : got) got_pointers.push_back(b.data());
  kernel::interpret(p.k, expected_pointers.data(), p.extents.data(), p.strides.data(), p.scalars.data());
  run(c, got_pointers, p.extents, p.strides, p.scalars, cuts);
  int reported = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const DType t = p.k.buffers[i].dtype;
    EXPECT_TRUE(got[i].guards_hold()) << what << ": bytes around b" << i << " were written\n" << kernel::print(p.k);
    for (size_t j = 0; j < got[i].size / size_of(t) && reported < 3; ++j) {
      const ops::Value want = ops::load(t, expected[i].data() + j * size_of(t));
      const ops::Value have = ops::load(t, got[i].data() + j * size_of(t));
      const bool fine = p.k.buffers[i].output ? same(t, want, have) : equal(t, want, have);
      if (fine) continue;
      ++reported;
      ADD_FAILURE() << what << ": b" << i << "[" << j << "] is " << (is_floating(t) ? have.f() : double(have.i()))
                    << ", not " << (is_floating(t) ? want.f() : double(want.i())) << "\n"
                    << kernel::print(p.k);
    }
  }
}

}  // namespace fxjit::test
