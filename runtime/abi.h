/* The C ABI between generated code and its host. It knows neither graph nor LLVM nor torch; ahead-of-time artefacts
   link what implements it. Every function returns a status or cannot fail; nothing unwinds through generated code. */
#ifndef FXJIT_RUNTIME_ABI_H
#define FXJIT_RUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FXJIT_ABI_VERSION 1

typedef int32_t fxjit_status;
enum {
  FXJIT_OK = 0,
  FXJIT_GUARD = 1,    /* a guard did not hold; nothing was done */
  FXJIT_ERROR = 2,    /* frame->error carries the exception */
  FXJIT_NO_MEMORY = 3 /* the runtime could not allocate; frame->error is untouched, the host raises its own error */
};

/* An owned or borrowed reference to a tensor or a value of the host: at::TensorImpl*, PyObject*, a boxed IValue. */
typedef void* fxjit_value;

/* A compiled kernel: runs units [begin, end). `ctx` is a fxjit_launch. The type is also that of the host's
   parallel-for callback, so no trampoline is needed. A unit is one block of `block` elements of the inner axis at one
   outer index (elementwise), or one row (row kernels): results do not depend on how units are split among threads. */
typedef void (*fxjit_kernel)(int64_t begin, int64_t end, void* ctx);

/* What a kernel is called with. The arrays follow the order of kernel::Kernel. */
typedef struct fxjit_launch {
  void* const* pointers;   /* one per buffer */
  const int64_t* extents;  /* one per axis */
  const int64_t* strides;  /* [buffer][axis], in elements; read only where the stride class is Any */
  const uint64_t* scalars; /* f64 or i64 bits, one per scalar */
  int64_t blocks;          /* elementwise: blocks per outer index = ceil(inner extent / block) */
  fxjit_status status;     /* FXJIT_OK before; a kernel that gets no scratch leaves FXJIT_NO_MEMORY and does nothing */
} fxjit_launch;

typedef void (*fxjit_parallel_for)(int64_t begin, int64_t end, int64_t grain, fxjit_kernel fn, void* ctx);

struct fxjit_frame;

/* What the host gives to generated code. Slots are owned by the frame; a callee reads and writes them by index. */
typedef struct fxjit_table {
  /* Runs node `node` of the program in frame->program: reads slots and symbols, writes result slots. */
  fxjit_status (*call)(struct fxjit_frame* frame, int32_t node);
  /* Drops the reference in a slot (it may be empty). */
  void (*release)(struct fxjit_frame* frame, int32_t slot);
  /* Puts a new tensor into slot `slot` and its data pointer into *data. dtype: fxjit::DType. */
  fxjit_status (*empty)(struct fxjit_frame* frame, int32_t slot, int32_t dtype, int32_t rank, const int64_t* sizes,
                        const int64_t* strides, void** data);
  /* Data pointer of the tensor in a slot, storage offset included. */
  void* (*data)(struct fxjit_frame* frame, int32_t slot);
} fxjit_table;

typedef struct fxjit_frame {
  const fxjit_table* table;
  const void* program; /* the host's: callees, argument templates, constants */
  fxjit_value* slots;
  int64_t* symbols; /* values of the ShapeEnv's expressions that callees need */
  char* arena;      /* base of this call's scratch memory, 64-byte aligned */
  size_t arena_bytes;
  void* error; /* the host's exception holder */
  fxjit_parallel_for parallel;
  int32_t threads;
  const uint64_t* words; /* what a specialised forward compares with its own: thread-local sets, global flags */
} fxjit_frame;

/* The two forms of `forward`. Inputs are borrowed, results are owned by the caller; an unfilled `out` is NULL.
   Generic: one slot operation per node, any shape, any callee. Specialised: `in` are the program's tensors (inputs,
   then the attributes it reads), `scalars` its ints and floats (8 bytes each); it checks its guards before anything
   else and returns FXJIT_GUARD with nothing done. On FXJIT_ERROR and FXJIT_NO_MEMORY slots may still hold references,
   which the host drops. */
typedef fxjit_status (*fxjit_generic)(fxjit_frame* frame, const fxjit_value* in, fxjit_value* out);
typedef fxjit_status (*fxjit_specialised)(fxjit_frame* frame, const fxjit_value* in, const int64_t* scalars,
                                          fxjit_value* out);

/* Makes frame->arena at least `bytes` large, 64-byte aligned; its contents become undefined when it grows. `forward`
   calls it once, before the first use, with the value of its memory plan. FXJIT_OK or FXJIT_NO_MEMORY. */
fxjit_status fxjit_arena_reserve(fxjit_frame* frame, size_t bytes);

/* Thread-local scratch of at least `bytes`, 64-byte aligned, valid until the calling kernel returns; one at a time.
   NULL where there is no memory. */
void* fxjit_scratch(size_t bytes);

/* Calls fn over [0, units): inline where units <= grain or threads == 1 or after fork, else through frame->parallel. */
void fxjit_launch_kernel(fxjit_frame* frame, fxjit_kernel fn, fxjit_launch* launch, int64_t units, int64_t grain);

/* A fxjit_parallel_for that runs the whole range on the calling thread: the host of the core preset. */
void fxjit_serial_for(int64_t begin, int64_t end, int64_t grain, fxjit_kernel fn, void* ctx);

/* What generated code may refer to by name: the functions above, memcpy and memset. A symbol that is not in this list
   is an internal error of the compiler. */
typedef struct fxjit_symbol {
  const char* name;
  void* address;
} fxjit_symbol;
const fxjit_symbol* fxjit_runtime_symbols(size_t* count);

#ifdef __cplusplus
}
#endif
#endif
