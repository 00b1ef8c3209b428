# One static library per floor. A floor links the floors below it; its folder may be empty while it is being built.
set(FXJIT_FLOORS "")  # the targets that exist, lowest first

function(fxjit_floor name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(fxjit_${name} STATIC ${sources})
  set_target_properties(fxjit_${name} PROPERTIES UNITY_BUILD ${FXJIT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  target_link_libraries(fxjit_${name} PUBLIC fxjit_flags ${FXJIT_FLOORS} ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  set(FXJIT_FLOORS ${FXJIT_FLOORS} fxjit_${name} PARENT_SCOPE)
endfunction()

find_package(Threads REQUIRED)

fxjit_floor(support)
fxjit_floor(fx)
fxjit_floor(ops)
fxjit_floor(kernel)
fxjit_floor(passes)  # above kernel: fuse makes kernels

# runtime/ is C ABI: it links no floor, and it never sees torch, LLVM or -fopenmp.
file(GLOB runtime_sources CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/runtime/*.cpp ${CMAKE_SOURCE_DIR}/runtime/cpu/*.cpp ${CMAKE_SOURCE_DIR}/runtime/cuda/*.cpp)
if(runtime_sources)
  add_library(fxjit_runtime STATIC ${runtime_sources})
  target_link_libraries(fxjit_runtime PUBLIC fxjit_flags Threads::Threads ${CMAKE_DL_LIBS})
  list(APPEND FXJIT_FLOORS fxjit_runtime)
endif()

# oneDNN's headers are those of its own wheel: torch ships newer ones, which must not be seen here.
file(GLOB dnnl_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/libs/dnnl/*.cpp)
find_path(FXJIT_DNNL_INCLUDE oneapi/dnnl/dnnl.h HINTS ${FXJIT_PYTHON_PREFIX}/include)
if(dnnl_sources AND FXJIT_DNNL_INCLUDE)
  add_library(fxjit_dnnl STATIC ${dnnl_sources})
  target_include_directories(fxjit_dnnl SYSTEM PRIVATE ${FXJIT_DNNL_INCLUDE})
  target_link_libraries(fxjit_dnnl PUBLIC fxjit_flags ${CMAKE_DL_LIBS})
  if(FXJIT_DNNL_LIBRARY STREQUAL "auto")
    set(FXJIT_DNNL_LIBRARY ${FXJIT_PYTHON_PREFIX}/lib/libdnnl.so.3)
  endif()
  # An empty path: the library is looked for at run time.
  target_compile_definitions(fxjit_dnnl PRIVATE FXJIT_DNNL_LIBRARY="${FXJIT_DNNL_LIBRARY}")
  list(APPEND FXJIT_FLOORS fxjit_dnnl)
endif()

fxjit_floor(codegen PRIVATE fxjit_llvm)
fxjit_floor(jit PRIVATE fxjit_llvm)
target_precompile_headers(fxjit_codegen PRIVATE <llvm/IR/IRBuilder.h> <llvm/IR/Module.h>)

set(FXJIT_CORE_FLOORS ${FXJIT_FLOORS})  # what tests of floors 0 to 6 may link
if(FXJIT_WITH_TORCH)
  fxjit_floor(torch PUBLIC fxjit_libtorch)
  if(TARGET fxjit_torch AND NOT TARGET fxjit_dnnl)
    target_compile_definitions(fxjit_torch PRIVATE FXJIT_NO_DNNL)  # its leaves are ATen calls then
  endif()
  fxjit_floor(driver PUBLIC fxjit_libtorch)
  # Reading ATen's headers is most of what a file of these floors costs: 3.7 s with them precompiled, 7.2 s without.
  # Each file still includes what it needs: the preset clang builds without.
  target_precompile_headers(fxjit_torch PRIVATE <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h>)
  target_precompile_headers(fxjit_driver REUSE_FROM fxjit_torch)
  # g++ 12 reports an overflow falsely there once the headers are no system headers any more.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/torch/layout.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()
