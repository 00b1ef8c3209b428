// The thread that compiles for the option `background`.
#pragma once

#include <functional>

#include "fxjit/api.h"

namespace fxjit::inline v0::driver {

// Runs `job`, which throws nothing, after those before it, on a thread of its own that the first job starts. In the
// child of a fork the parent's jobs are gone and the next one starts a thread there. After stop_background() nothing
// runs any more.
FXJIT_API void run_in_background(std::function<void()> job);

// Waits until all jobs that this process was given so far are done. Not to be called by a job, nor with a lock held
// (the GIL is one) that a job may need.
FXJIT_API void drain_background();

// Waits for the job that runs, drops those that wait, ends the thread: before an interpreter, or the process, is gone.
FXJIT_API void stop_background();

}  // namespace fxjit::inline v0::driver
