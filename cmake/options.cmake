option(FXJIT_WITH_TORCH "Build the floors that speak ATen (torch, driver, python); OFF is the `core` preset" ON)
option(FXJIT_BUILD_TESTS "Build the tests" ON)
option(FXJIT_BUILD_BENCH "Build the benchmarks" OFF)
option(FXJIT_BUILD_EXAMPLES "Build the C++ examples" ON)
option(FXJIT_UNITY "Compile up to 8 files of a folder as one: a whole build in half the time, one changed file in twice the time" ON)
option(FXJIT_WERROR "Treat warnings as errors" ON)
set(FXJIT_SANITIZE "" CACHE STRING "Sanitizers for every object, as in -fsanitize= (core only: libtorch is not clean)")
set(FXJIT_DNNL_LIBRARY "auto" CACHE STRING
    "Path of the libdnnl that is opened at run time; empty: found at run time; auto: the one beside the interpreter")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
