# find_package(Torch) is a fatal error where no CUDA toolkit is installed (the wheel is a CUDA build), so the
# libraries are imported by hand from the interpreter's torch package.
if(NOT FXJIT_WITH_TORCH)
  return()
endif()
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, importlib.metadata as m
print(u.find_spec('torch').submodule_search_locations[0] + ';' + m.version('torch'))"
  OUTPUT_VARIABLE torch_answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_status ERROR_QUIET)
if(NOT torch_status EQUAL 0)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no torch: run tools/setup, or configure with --preset core")
endif()
list(GET torch_answer 0 FXJIT_TORCH_DIR)
list(GET torch_answer 1 FXJIT_TORCH_VERSION)
message(STATUS "torch ${FXJIT_TORCH_VERSION} in ${FXJIT_TORCH_DIR}")
if(FXJIT_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "torch ${FXJIT_TORCH_VERSION} is too old: fxjit needs 2.11 (pip install -r requirements.txt)")
endif()

function(import_torch_library target file)
  add_library(${target} SHARED IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${FXJIT_TORCH_DIR}/lib/${file})
endfunction()
import_torch_library(torch_c10 libc10.so)
import_torch_library(torch_cpu libtorch_cpu.so)
import_torch_library(torch_python libtorch_python.so)

add_library(fxjit_libtorch INTERFACE)
target_include_directories(fxjit_libtorch SYSTEM INTERFACE
  ${FXJIT_TORCH_DIR}/include ${FXJIT_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(fxjit_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
# ATen/TensorOperators.h brings all of ATen's functions otherwise, 5 s of compiling a file.
target_compile_definitions(fxjit_libtorch INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_libraries(fxjit_libtorch INTERFACE torch_cpu torch_c10)

add_library(fxjit_libtorch_python INTERFACE)
target_link_libraries(fxjit_libtorch_python INTERFACE fxjit_libtorch torch_python)
