#include "op_harness.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/schedule.h"
#include "jit/kernel_cache.h"
#include "support/errors.h"
#include "support/format.h"

namespace fxjit::testing {

using kernel::Kernel;
using ops::Value;
using support::concat;

namespace {

constexpr size_t kGuard = 128;
constexpr unsigned char kGuardByte = 0xa5;
constexpr uint32_t kControlBits = 0xffc0;  // of MXCSR: rounding, masks, flush-to-zero; not the sticky flags

}  // namespace

std::vector<std::string> kernel_targets() {
  std::vector<std::string> out;
  for (const char* name : {"avx512", "avx2"}) {
    if (jit::runs_here(*jit::find_target(name))) out.emplace_back(name);
  }
  return out;
}

Memory::Memory(DType t, int64_t elements, int skew) : type_(t), elements_(elements) {
  const size_t size = size_of(t);
  bytes_.assign(static_cast<size_t>(elements) * size + 2 * kGuard + 64 + 16 * size, kGuardByte);
  const size_t misaligned = reinterpret_cast<uintptr_t>(bytes_.data()) % 64;
  offset_ = kGuard + (64 - misaligned) % 64 + static_cast<size_t>(skew) * size;
}

Value Memory::get(int64_t i) const {
  return ops::load(type_, bytes_.data() + offset_ + static_cast<size_t>(i) * size_of(type_));
}

void Memory::set(int64_t i, Value v) {
  ops::store(type_, bytes_.data() + offset_ + static_cast<size_t>(i) * size_of(type_), v);
}

bool Memory::guards_hold() const {
  const size_t end = offset_ + static_cast<size_t>(elements_) * size_of(type_);
  auto intact = [](unsigned char b) { return b == kGuardByte; };
  return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset_), intact) &&
         std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(end), bytes_.end(), intact);
}

Tolerance tolerance_of(const ops::OpRow& row, DType t) {
  const bool functions = (row.domain & ops::bit(DType::Float32)) && !(row.domain & ops::bit(DType::Float64));
  if (!functions || !is_floating(t)) return {};
  if (is_half(t)) return {1, 0x1p-20, 0};  // a neighbour, where the float32 value lies near the middle of two
  const bool cancels = row.id == ops::OpId::gelu || row.id == ops::OpId::gelu_tanh;
  const bool composed = cancels || row.id == ops::OpId::silu || row.id == ops::OpId::softplus;
  // Where the exact result is a denormal number, so may be the steps on the way.
  return {composed ? 4.0 : 3.0, cancels ? 0x1p-21 : 0, 0x1p-126};
}

namespace {

double ulp(DType t, double v) {
  const int bits = t == DType::Float16 ? 11 : t == DType::BFloat16 ? 8 : t == DType::Float32 ? 24 : 53;
  const int lowest = t == DType::Float16 ? -14 : t == DType::Float64 ? -1022 : -126;
  const int exponent = v == 0 ? lowest : std::max(std::ilogb(v), lowest);
  return std::ldexp(1.0, exponent - (bits - 1));
}

bool close(DType t, Value got, Value want, double operand, const Tolerance& allowed) {
  if (got == want) return true;
  if (!is_floating(t)) return false;
  const double a = got.f(), b = want.f();
  if (b != b) return a != a;
  if (a == b) return allowed.ulps > 0;  // zeros of two signs
  if (!std::isfinite(a) || !std::isfinite(b)) {
    // Infinity against the largest numbers.
    const bool same_side = a == a && std::signbit(a) == std::signbit(b);
    const double finite = std::isfinite(a) ? a : b;
    return same_side && allowed.ulps > 0 && std::fabs(finite) >= ops::largest(t) * (1 - 0x1p-7);
  }
  const double scale = std::isfinite(operand) ? std::fabs(operand) : 0;
  return std::fabs(a - b) <= allowed.ulps * ulp(t, b) + allowed.relative_to_operand * scale + allowed.absolute;
}

class Comparison {
 public:
  Comparison(const Kernel& k, const Shape& shape, const Tolerance& tolerance)
      : k_(k), shape_(shape), tolerance_(tolerance) {
    for (size_t b = 0; b < k.buffers.size(); ++b) {
      const int skew = static_cast<int>(b % 3);
      got_.emplace_back(k.buffers[b].dtype, elements(b), skew);
      want_.emplace_back(k.buffers[b].dtype, elements(b), skew);
    }
  }

  void fill(const std::vector<std::vector<Value>>& sets) {
    size_t input = 0;
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      const bool output = k_.buffers[b].output;
      for (int64_t i = 0; i < elements(b); ++i) {
        Value v = ops::cast(DType::Float64, k_.buffers[b].dtype, Value::of(1.0));
        if (!output) {
          // Strides without common factors, so that operands meet in ever new pairs.
          const std::vector<Value>& set = sets[input];
          static constexpr size_t strides[] = {1, 17, 29, 41};
          v = set[(static_cast<size_t>(i) * strides[input % 4] + 5 * input) % set.size()];
        }
        got_[b].set(i, v);
        want_[b].set(i, v);
      }
      input += !output;
    }
  }

  std::string run(const std::string& target) {
    Options options;
    options.target = target;
    codegen::ScheduleOptions schedule_options;
    schedule_options.registers = target == "avx2" ? 8 : 32;
    const codegen::Schedule schedule = codegen::choose_schedule(k_, schedule_options);
    const Result<jit::KernelHandle> handle = jit::get_kernel(k_, schedule, options);
    if (!handle) return handle.reason();
    std::vector<void*> pointers, reference;
    for (Memory& m : got_) pointers.push_back(m.data());
    for (Memory& m : want_) reference.push_back(m.data());
    fxjit_launch launch{pointers.data(),
                        shape_.extents.data(),
                        shape_.strides.data(),
                        shape_.scalars.data(),
                        codegen::blocks_per_outer(k_, schedule, shape_.extents.data()),
                        FXJIT_OK};
    const int64_t units = codegen::unit_count(k_, schedule, shape_.extents.data());
    const uint32_t control = _mm_getcsr() & kControlBits;
    constexpr int cuts = 3;
    for (int i = 0; i < cuts; ++i) handle->function(units * i / cuts, units * (i + 1) / cuts, &launch);
    if ((_mm_getcsr() & kControlBits) != control) return "the kernel changed MXCSR";
    kernel::interpret(k_, reference.data(), shape_.extents.data(), shape_.strides.data(), shape_.scalars.data());
    return difference();
  }

 private:
  int64_t stride(size_t b, size_t a) const {
    const kernel::StrideClass c = k_.buffers[b].strides[a];
    if (c == kernel::StrideClass::Zero) return 0;
    return c == kernel::StrideClass::Unit ? 1 : shape_.strides[b * k_.axes.size() + a];
  }

  int64_t elements(size_t b) const {
    int64_t last = 0;
    for (size_t a = 0; a < k_.axes.size(); ++a) last += std::max<int64_t>(shape_.extents[a] - 1, 0) * stride(b, a);
    return last + 1;
  }

  std::string difference() const {
    for (size_t b = 0; b < got_.size(); ++b) {
      if (!got_[b].guards_hold()) return concat("b", b, " was written outside of its elements");
      const DType t = k_.buffers[b].dtype;
      for (int64_t i = 0; i < elements(b); ++i) {
        const bool same_place = t == k_.buffers[0].dtype && elements(b) == elements(0) && is_floating(t);
        const double operand = same_place ? got_[0].get(i).f() : 0;
        if (close(t, got_[b].get(i), want_[b].get(i), operand, tolerance_)) continue;
        return concat("b", b, "[", i, "] is ", show(t, got_[b].get(i)), ", not ", show(t, want_[b].get(i)),
                      operands_at(i));
      }
    }
    return "";
  }

  static std::string show(DType t, Value v) {
    return is_floating(t) ? support::python_float(v.f()) : std::to_string(v.i());
  }

  std::string operands_at(int64_t i) const {
    std::string out = "; operands";
    for (size_t b = 0; b < got_.size(); ++b) {
      if (!k_.buffers[b].output && i < elements(b)) out += " " + show(k_.buffers[b].dtype, got_[b].get(i));
    }
    return out;
  }

  const Kernel& k_;
  const Shape& shape_;
  const Tolerance& tolerance_;
  std::vector<Memory> got_, want_;
};

}  // namespace

std::string compare(const Kernel& k, const Shape& shape, const std::vector<std::vector<Value>>& sets,
                    const Tolerance& tolerance, const std::string& target) {
  kernel::verify(k);
  Comparison comparison(k, shape, tolerance);
  comparison.fill(sets);
  const std::string found = comparison.run(target);
  if (found.empty()) return "";
  std::string extents;
  for (int64_t e : shape.extents) extents += (extents.empty() ? "" : " x ") + std::to_string(e);
  return concat(target, ", ", extents, ": ", found, "\n", kernel::print(k));
}

}  // namespace fxjit::testing
