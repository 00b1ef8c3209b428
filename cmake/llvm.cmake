# LLVM 19, static, its components one by one. `find_package(LLVM 19)` refuses 19.1.x, so 19.1 is asked for.
find_package(LLVM 19.1 CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 19.1 was not found: run tools/setup, or `apt-get install llvm-19-dev`, or set LLVM_DIR")
endif()
llvm_map_components_to_libnames(llvm_libraries
  orcjit x86codegen x86info x86desc x86asmparser nvptxcodegen nvptxinfo nvptxdesc)

add_library(fxjit_llvm INTERFACE)
target_include_directories(fxjit_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(fxjit_llvm INTERFACE ${llvm_definitions})
target_link_libraries(fxjit_llvm INTERFACE ${llvm_libraries})
