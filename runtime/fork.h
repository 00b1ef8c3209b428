/* Whether this process is the child of a fork that came after the runtime was loaded. libgomp's pool does not survive a
   fork: a parallel region entered in the child waits for threads that are not there, so everything runs inline. */
#ifndef FXJIT_RUNTIME_FORK_H
#define FXJIT_RUNTIME_FORK_H

#ifdef __cplusplus
extern "C" {
#endif

int fxjit_in_fork_child(void);

#ifdef __cplusplus
}
#endif
#endif
