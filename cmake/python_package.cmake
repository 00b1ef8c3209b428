# build/<preset>/python/ is a package directory: PYTHONPATH=build/<preset>/python imports fxjit as an installed one,
# entry points included. Its .py files are links to the sources.
if(NOT FXJIT_WITH_TORCH)
  return()
endif()
set(package_dir ${CMAKE_BINARY_DIR}/python/fxjit)
file(GLOB_RECURSE package_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/python/fxjit
  ${CMAKE_SOURCE_DIR}/src/python/fxjit/*.py ${CMAKE_SOURCE_DIR}/src/python/fxjit/*.pyi
  ${CMAKE_SOURCE_DIR}/src/python/fxjit/py.typed)
file(GLOB_RECURSE old_links ${package_dir}/*.py ${package_dir}/*.pyi)
if(old_links)
  file(REMOVE ${old_links})
endif()
foreach(file IN LISTS package_files)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY ${package_dir}/${folder})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/python/fxjit/${file} ${package_dir}/${file} SYMBOLIC)
endforeach()

set(dist_info ${CMAKE_BINARY_DIR}/python/fxjit-${PROJECT_VERSION}.dist-info)
file(WRITE ${dist_info}/METADATA "Metadata-Version: 2.1\nName: fxjit\nVersion: ${PROJECT_VERSION}\n")
file(WRITE ${dist_info}/entry_points.txt "[torch_dynamo_backends]\nfxjit = fxjit.dynamo:backend\n")

file(GLOB bindings CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/python/*.cpp)
if(NOT bindings OR NOT TARGET fxjit)
  return()
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(_C NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${bindings})
target_link_libraries(_C PRIVATE fxjit_flags fxjit fxjit_libtorch_python)
set_target_properties(_C PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package_dir}
  BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN;$ORIGIN/../torch/lib")
install(TARGETS _C LIBRARY DESTINATION fxjit)
