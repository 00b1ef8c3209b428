/* Call frames, pooled per thread. A frame belongs to one call; a call inside a call takes another one. */
#ifndef FXJIT_RUNTIME_FRAME_H
#define FXJIT_RUNTIME_FRAME_H

#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* the extension module calls these */

/* A frame with `slots` empty (NULL) slots and `symbols` symbols of undefined value; table, program, error, parallel are
   NULL, threads is 1. Its arena is what an earlier call left, or empty. NULL without memory. */
fxjit_frame* fxjit_frame_acquire(int32_t slots, int32_t symbols);

/* Gives the frame back. Every slot must be empty again and `error` taken: the runtime cannot release host values. An
   arena above 1 MiB returns to the pool. May run on another thread than the acquire. */
void fxjit_frame_release(fxjit_frame* frame);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
