# The interpreter that owns torch, nanobind and oneDNN: .venv's unless the caller (pip, scikit-build-core) names one.
if(NOT Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
if(FXJIT_WITH_TORCH)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.11 COMPONENTS Interpreter)
endif()

set(FXJIT_PYTHON_PREFIX "")
if(Python_Interpreter_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sys; print(sys.prefix)"
                  OUTPUT_VARIABLE FXJIT_PYTHON_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
