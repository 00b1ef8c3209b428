// The loop that every pointwise hand-written kernel shares: blocks of fixed size, four vectors a step, a masked tail.
#pragma once
#include <cstddef>
#include <cstdint>

#include "hand.h"
#include "hand_math.h"

namespace hand {

// What a kernel gets as its context.
struct Call {
  HandArgs args;
  bool stream;  // write past the caches
};

constexpr int64_t kLanes = 16;
constexpr int64_t kUnroll = 4;
constexpr int64_t kStep = kLanes * kUnroll;
constexpr int64_t kBlock = 16384;  // elements: 32 to 64 KiB of output, and a multiple of 64 bytes in every dtype

// Below this an output is likely to be read again while it is still cached, and streaming loses (0.5 to 0.8 of the
// speed).
constexpr int64_t kStreamBytes = 32 << 20;

inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// An element type: how sixteen of it become fp32 and back.
struct Float {
  using Element = float;
  static Vec load(const Element* p) { return _mm512_loadu_ps(p); }
  static Vec load(const Element* p, __mmask16 m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(Element* p, Vec v) { _mm512_storeu_ps(p, v); }
  static void store(Element* p, Vec v, __mmask16 m) { _mm512_mask_storeu_ps(p, m, v); }
  static void stream(Element* p, Vec v) { _mm512_stream_ps(p, v); }
};

struct Half {
  using Element = uint16_t;
  static Vec load(const Element* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Vec load(const Element* p, __mmask16 m) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p)); }
  static __m256i round(Vec v) { return _mm512_cvtps_ph(v, kNearest); }
  static void store(Element* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), round(v)); }
  static void store(Element* p, Vec v, __mmask16 m) { _mm256_mask_storeu_epi16(p, m, round(v)); }
  static void stream(Element* p, Vec v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), round(v)); }
};

template <class Type, bool kStream>
inline void put(typename Type::Element* p, Vec v) {
  if constexpr (kStream) {
    Type::stream(p, v);
  } else {
    Type::store(p, v);
  }
}

// out[i] = op(in[0][i], in[1][i], ...) over [first, last). The vectors of a step are independent: the core overlaps
// them.
template <class Type, bool kStream, size_t... kIn, class Op>
inline void span(const Call& call, int64_t first, int64_t last, Op op) {
  using Element = typename Type::Element;
  const Element* in[] = {static_cast<const Element*>(call.args.in[kIn])...};
  Element* out = static_cast<Element*>(call.args.out);
  int64_t i = first;
  for (; i + kStep <= last; i += kStep) {
    Vec result[kUnroll];
#pragma GCC unroll 4
    for (int64_t u = 0; u < kUnroll; ++u) result[u] = op(Type::load(in[kIn] + i + u * kLanes)...);
#pragma GCC unroll 4
    for (int64_t u = 0; u < kUnroll; ++u) put<Type, kStream>(out + i + u * kLanes, result[u]);
  }
  for (; i < last; i += kLanes) {
    const __mmask16 mask = static_cast<__mmask16>((1u << min64(kLanes, last - i)) - 1);
    Type::store(out + i, op(Type::load(in[kIn] + i, mask)...), mask);
  }
}

// A HandKernel over blocks of kBlock elements.
template <class Type, class Op, size_t... kIn>
inline void pointwise(int64_t begin, int64_t end, void* ctx) {
  const Call& call = *static_cast<const Call*>(ctx);
  const int64_t first = begin * kBlock;
  const int64_t last = min64(end * kBlock, call.args.count);
  if (call.stream) {
    span<Type, true, kIn...>(call, first, last, Op());
    _mm_sfence();  // streamed stores are not ordered with the hand-over to other threads
  } else {
    span<Type, false, kIn...>(call, first, last, Op());
  }
}

// The row kernels, in hand_rows.cpp; a block is a row.
void softmax(int64_t begin, int64_t end, void* ctx);
void layer_norm(int64_t begin, int64_t end, void* ctx);
void rms_norm(int64_t begin, int64_t end, void* ctx);

}  // namespace hand
