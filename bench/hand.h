// The hand-written kernels that compiled ones are measured against, behind a C ABI: bench/compare.py loads the library
// with ctypes, the Google Benchmark binary links it. AVX-512 only (x86-64-v4).
//
// A kernel keeps the promises that a compiled one keeps, or the comparison would be unfair: every operator of a
// written-out chain rounds in its own dtype, functions stay within the project's ULP budgets over the whole range with
// special values, outputs of 32 MB and more are written past the caches, and a block is the same whatever the number of
// threads.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAND_API __attribute__((visibility("default")))

// Works on blocks [begin, end); the callback type of torch_parallel_for.
typedef void (*HandKernel)(int64_t begin, int64_t end, void* ctx);

// Has the signature of torch_parallel_for, so that the kernels share torch's thread pool. Returns 0 on success.
typedef int32_t (*HandParallel)(int64_t begin, int64_t end, int64_t grain, HandKernel kernel, void* ctx);

typedef struct {
  const void* in[3];  // operands, in the order of the case's signature; unused ones null
  void* out;
  int64_t count;  // pointwise: elements; rows: rows (copy: bytes, a multiple of 4)
  int64_t cols;   // rows only: elements of a row, a multiple of 64
  float eps;      // normalisations only
} HandArgs;

// Runs the kernel `name` to its end. `parallel` null: on this thread.
// Returns 0; 1 for an unknown name, 2 for a number of columns that is no multiple of 64, else what `parallel` returned.
HAND_API int32_t hand_run(const char* name, const HandArgs* args, HandParallel parallel);

// The name of kernel `index`, or null past the last one.
HAND_API const char* hand_name(int64_t index);

typedef struct {
  double max_ulp;  // largest error seen where the exact result is normal, infinite or zero, in ULP of the exact result
  float at;        // the argument it was seen at
  double budget;   // what the project allows
  int64_t wrong;   // special values (infinities, NaN, signed zeros, overflow) answered wrongly
} HandAccuracy;

// Sweeps function `name` (exp, sigmoid, tanh) over every `stride`-th float against double. An odd stride near 1000
// takes a fraction of a second. Returns 0, or 1 for an unknown name.
HAND_API int32_t hand_accuracy(const char* name, uint32_t stride, HandAccuracy* result);

#ifdef __cplusplus
}
#endif
