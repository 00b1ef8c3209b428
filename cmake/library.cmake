# libfxjit.so holds every object of every floor; LLVM stays inside it. Tests link the static libraries instead and
# never load both.
if(NOT FXJIT_FLOORS)
  return()
endif()
set(objects "")
foreach(floor IN LISTS FXJIT_FLOORS)
  list(APPEND objects $<TARGET_OBJECTS:${floor}>)
endforeach()
add_library(fxjit SHARED ${objects})
set_target_properties(fxjit PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/fxjit INSTALL_RPATH "$ORIGIN;$ORIGIN/../torch/lib")
target_link_options(fxjit PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map -Wl,--exclude-libs,ALL
                                  -Wl,--build-id -Wl,-z,defs)
target_include_directories(fxjit INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(fxjit PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
if(TARGET fxjit_codegen OR TARGET fxjit_jit)
  target_link_libraries(fxjit PRIVATE fxjit_llvm)
endif()
if(FXJIT_WITH_TORCH)
  target_link_libraries(fxjit PUBLIC fxjit_libtorch)
endif()
install(TARGETS fxjit LIBRARY DESTINATION fxjit)
install(DIRECTORY include/fxjit DESTINATION fxjit/include)
