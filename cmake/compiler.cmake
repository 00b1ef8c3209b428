set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
# Assertions stay on where tests run; -g1 keeps stack traces and a third of the debug information's size.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

find_program(FXJIT_CCACHE ccache)
if(FXJIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${FXJIT_CCACHE})
  # Without these ccache passes everything by that reads a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${FXJIT_CCACHE})
endif()

# g++ looks for `ld.lld` by that name, which Debian keeps in LLVM's own folder.
find_program(FXJIT_LLD NAMES ld.lld PATHS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
if(FXJIT_LLD)
  cmake_path(GET FXJIT_LLD PARENT_PATH lld_dir)
  add_link_options(-fuse-ld=lld -B${lld_dir})
endif()
add_link_options(-Wl,--gc-sections)

# What every object of ours is compiled with; third-party targets (nanobind) stay out of it.
add_library(fxjit_flags INTERFACE)
target_include_directories(fxjit_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
target_compile_options(fxjit_flags INTERFACE -Wall -Wextra -ffunction-sections -fdata-sections -fno-omit-frame-pointer
                                             -ffp-contract=off)
if(FXJIT_WERROR)
  target_compile_options(fxjit_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(fxjit_flags INTERFACE -fno-gnu-unique)  # a GNU_UNIQUE symbol pins the library in memory
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 at -O2 reports both falsely on `"x" + std::to_string(i)`.
    target_compile_options(fxjit_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
    # And at -O3 these, in inlined code of std::string and llvm::SmallVector.
    target_compile_options(fxjit_flags INTERFACE $<$<CONFIG:Release>:-Wno-array-bounds> $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++'s own stable_sort calls what it marks as deprecated; g++ reports whatever is ours.
  target_compile_options(fxjit_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # lets ccache see a precompiled header's text
endif()
if(FXJIT_SANITIZE)
  add_compile_options(-fsanitize=${FXJIT_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FXJIT_SANITIZE})
endif()
