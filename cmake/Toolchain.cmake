# Settings of the tools: warnings, sanitizers, linker and compiler cache.

option(FENCEPOST_LTO "Link-time optimisation" OFF)
set(FENCEPOST_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined or thread")

# g++ 12 miscompiles ordinary coroutines (docs/architecture.md), so a build with it would be unsafe.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "Fencepost needs clang 19 or newer (found ${CMAKE_CXX_COMPILER_ID} "
                      "${CMAKE_CXX_COMPILER_VERSION}). Use a preset: cmake --preset release")
endif()

add_library(fencepost_flags INTERFACE)
target_compile_options(fencepost_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wimplicit-fallthrough -Wextra-semi -Wunused -Wno-missing-field-initializers
  -fno-omit-frame-pointer -fstack-protector-strong)
target_compile_definitions(fencepost_flags INTERFACE _FORTIFY_SOURCE=$<IF:$<CONFIG:Debug>,0,2>)

if(FENCEPOST_SANITIZE)
  target_compile_options(fencepost_flags INTERFACE -fsanitize=${FENCEPOST_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(fencepost_flags INTERFACE -fsanitize=${FENCEPOST_SANITIZE})
endif()

if(FENCEPOST_LTO)
  target_compile_options(fencepost_flags INTERFACE -flto=thin)
  target_link_options(fencepost_flags INTERFACE -flto=thin)
  set(FENCEPOST_LINKERS ld.lld-19 ld.lld)
else()
  set(FENCEPOST_LINKERS ld.mold ld.lld-19 ld.lld)
endif()
find_program(FENCEPOST_LINKER NAMES ${FENCEPOST_LINKERS})
if(FENCEPOST_LINKER)
  target_link_options(fencepost_flags INTERFACE --ld-path=${FENCEPOST_LINKER})
endif()

# Lets a second build folder or clone reuse ccache's objects: paths are relative, the folder's name is part of neither
# the key nor the objects, and the precompiled header is keyed by its inputs (precompile.sh). ccache requires both kinds
# of sloppiness for precompiled headers; they are safe because no file uses __DATE__ or __TIME__.
find_program(FENCEPOST_CCACHE ccache)
if(FENCEPOST_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${FENCEPOST_CCACHE})
  # CMake's default also passes the header's absolute path, which ccache would make part of the key.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()
target_compile_options(fencepost_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
