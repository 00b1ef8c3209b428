#include "kernel/kernel.h"

namespace fxjit::inline v0::kernel {
namespace {

class Hasher {
 public:
  void add(uint64_t v) {
    // splitmix64's finaliser over a running sum: every bit of each word reaches every bit of the result.
    state_ += v + 0x9e3779b97f4a7c15ull;
    state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ull;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebull;
    state_ ^= state_ >> 31;
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace

uint64_t hash(const Kernel& k) {
  Hasher h;
  h.add(k.axes.size());
  for (const Axis& a : k.axes) h.add(a.reduction);
  h.add(k.buffers.size());
  for (const Buffer& b : k.buffers) {
    h.add(static_cast<uint64_t>(b.dtype) << 1 | uint64_t{b.output});
    for (StrideClass s : b.strides) h.add(static_cast<uint64_t>(s));
  }
  h.add(k.scalars.size());
  for (DType t : k.scalars) h.add(static_cast<uint64_t>(t));
  h.add(k.exprs.size());
  for (const Expr& e : k.exprs) {
    h.add(static_cast<uint64_t>(e.kind) | static_cast<uint64_t>(e.dtype) << 8 | static_cast<uint64_t>(e.op) << 16 |
          static_cast<uint64_t>(e.reduce) << 32);
    h.add(static_cast<uint64_t>(static_cast<int64_t>(e.index)));
    for (int32_t a : e.args) h.add(static_cast<uint64_t>(static_cast<int64_t>(a)));
    h.add(e.bits);
  }
  for (const Store& s : k.stores) {
    h.add(static_cast<uint64_t>(s.buffer) << 32 | static_cast<uint32_t>(s.expr));
  }
  return h.value();
}

}  // namespace fxjit::inline v0::kernel
