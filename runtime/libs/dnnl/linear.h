/* y = x * transpose(w) + b in float32 through oneDNN, which is opened at run time. The weight is packed once into the
   layout that the library likes for the size; who owns it decides when it is stale. */
#ifndef FXJIT_RUNTIME_LIBS_DNNL_LINEAR_H
#define FXJIT_RUNTIME_LIBS_DNNL_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where to look for the library before the configured and the system's place. Takes effect only before the first use;
   returns 0 afterwards. */
int fxjit_dnnl_set_path(const char* path);

/* NULL where oneDNN >= 3.1, < 4 could be opened; else a sentence that says what was tried. */
const char* fxjit_dnnl_problem(void);

/* 100 * major + minor of the opened library, e.g. 302; 0 with a problem. */
int fxjit_dnnl_version(void);

/* x: [m, k], w: [n, k], y: [m, n], all row-major and dense; all sizes at least 1. */
typedef struct fxjit_dnnl_shape {
  int64_t m, n, k;
  int32_t bias;    /* 0 or 1: b: [n] */
  int32_t threads; /* of the calling thread's OpenMP: a primitive keeps the count that it was made with */
} fxjit_dnnl_shape;

/* A primitive for one shape, shared by everybody who asks for that shape: the 256 used last are kept. Immutable and
   thread-safe. NULL where the library refuses; then *problem (if not NULL) is a static sentence. */
typedef struct fxjit_dnnl_linear fxjit_dnnl_linear;
fxjit_dnnl_linear* fxjit_dnnl_linear_get(const fxjit_dnnl_shape* shape, const char** problem);
void fxjit_dnnl_linear_release(fxjit_dnnl_linear* linear);

size_t fxjit_dnnl_linear_packed_bytes(const fxjit_dnnl_linear* linear);
size_t fxjit_dnnl_linear_scratch_bytes(const fxjit_dnnl_linear* linear);
/* Whether both read the same packed layout, so that a packed weight serves both. */
int fxjit_dnnl_linear_same_layout(const fxjit_dnnl_linear* a, const fxjit_dnnl_linear* b);

/* Packs w into `packed` (64-byte aligned). 0, or the library's status. */
int fxjit_dnnl_linear_pack(fxjit_dnnl_linear* linear, const float* w, void* packed);
/* Computes y. b is ignored without bias; scratch is 64-byte aligned. 0, or the library's status. */
int fxjit_dnnl_linear_run(fxjit_dnnl_linear* linear, const float* x, const void* packed, const float* b, float* y,
                          void* scratch);

#ifdef __cplusplus
}
#endif
#endif
