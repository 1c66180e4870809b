# fencepost_module(NAME DEPENDS a b LIBRARIES X::x)
#
# Adds the static library fencepost_NAME from the .cpp files in the calling folder and its subfolders, and
#   NAME_test    from *_test.cpp    (pure: no server, no network beyond loopback)
#   NAME_pgtest  from *_pgtest.cpp  (needs PostgreSQL; the harness in tests/support provides it)
# Headers are included from src/, e.g. "pg/pool.hpp". DEPENDS lists the modules that this one may use; these lists are
# the dependency graph of the modules.
function(fencepost_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;SOURCES" ${ARGN})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_(test|pgtest)\\.cpp$|/main\\.cpp$|/asio_beast\\.cpp$")
  file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp")
  file(GLOB_RECURSE pg_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_pgtest.cpp")

  list(TRANSFORM ARG_DEPENDS PREPEND fencepost_ OUTPUT_VARIABLE depends)
  set(target fencepost_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  fencepost_unite(${target} ${sources})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC ${depends} fencepost_asio fmt::fmt ${ARG_LIBRARIES} PRIVATE fencepost_flags)
  fencepost_use_pch(${target})

  if(FENCEPOST_TESTS)
    if(unit_tests)
      fencepost_test(${name}_test unit ${unit_tests})
      target_link_libraries(${name}_test PRIVATE ${target})
    endif()
    if(pg_tests)
      fencepost_test(${name}_pgtest pg ${pg_tests})
      target_link_libraries(${name}_pgtest PRIVATE ${target} fencepost_test_support)
    endif()
  endif()
endfunction()

# fencepost_unite(target sources…): adds the sources to the target. With FENCEPOST_UNITY, the files of a folder are
# compiled a few at a time, as one translation unit: most of the compiler's time goes into templates of Asio and the
# standard library that each of them would instantiate again. Not CMake's UNITY_BUILD, which includes by absolute path:
# no two clones would share a compiler cache.
option(FENCEPOST_UNITY "Compile several sources as one translation unit" OFF)
set(FENCEPOST_UNITY_SIZE 8)  # a unit takes at most about 20 s

function(fencepost_unite target)
  target_sources(${target} PRIVATE ${ARGN})
  if(NOT FENCEPOST_UNITY)
    return()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  set(folders "")
  foreach(source ${ARGN})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/src" OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    list(APPEND folders "${folder}")
    list(APPEND "files_${folder}" "${name}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    _fencepost_units(${target} "${folder}" ${files_${folder}})
  endforeach()
endfunction()

# As few units as the size allows, of about the same number of files.
function(_fencepost_units target folder)
  list(LENGTH ARGN count)
  math(EXPR units "(${count} + ${FENCEPOST_UNITY_SIZE} - 1) / ${FENCEPOST_UNITY_SIZE}")
  set(begin 0)
  foreach(unit RANGE 1 ${units})
    math(EXPR end "${count} * ${unit} / ${units}")
    math(EXPR length "${end} - ${begin}")
    list(SUBLIST ARGN ${begin} ${length} files)
    set(begin ${end})
    list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\" // NOLINT\n")
    list(JOIN files "" text)
    string(REPLACE "/" "_" stem "${folder}")
    set(path "${CMAKE_CURRENT_BINARY_DIR}/unity/${stem}_${unit}.cpp")
    file(CONFIGURE OUTPUT "${path}" @ONLY CONTENT "${text}")  # written only when it changes
    target_sources(${target} PRIVATE "${path}")
  endforeach()
endfunction()

# All targets have the same flags, so the program shares one precompiled header, and the tests share another.
function(fencepost_use_pch target)
  _fencepost_use_pch(${target} fencepost_pch base/pch.hpp)
endfunction()

# _fencepost_use_pch(target pch header libraries…): adds the target `pch` at its first use. The header is named as in an
# #include: an absolute path would differ in every clone.
function(_fencepost_use_pch target pch header)
  if(NOT TARGET ${pch})
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${pch}.cpp" CONTENT "")  # written only when it is missing
    add_library(${pch} STATIC "${CMAKE_BINARY_DIR}/${pch}.cpp")
    target_include_directories(${pch} PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(${pch} PRIVATE fencepost_asio fmt::fmt spdlog::spdlog fencepost_flags ${ARGN})
    target_precompile_headers(${pch} PRIVATE <${header}>)
    if(FENCEPOST_CCACHE)
      set_target_properties(${pch} PROPERTIES
        CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/cmake/precompile.sh;${CMAKE_SOURCE_DIR}")
    endif()
  endif()
  target_link_libraries(${target} PRIVATE spdlog::spdlog)
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

# fencepost_test(name label sources…): a GoogleTest binary, each test of which ctest runs in its own process.
function(fencepost_test name label)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main fencepost_test_basics fencepost_flags)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE fencepost_asio fmt::fmt)
  _fencepost_use_pch(${name} fencepost_test_pch tests/support/pch.hpp GTest::gtest GTest::gmock)
  # Integration tests take longest. Start them first, so that the last one does not run alone at the end.
  set(cost 1)
  if(label STREQUAL "integration")
    set(cost 1000)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${label} TIMEOUT 600 COST ${cost})
  # The targets unit_tests, pg_tests and integration_tests build all binaries of a label.
  if(NOT TARGET ${label}_tests)
    add_custom_target(${label}_tests)
  endif()
  add_dependencies(${label}_tests ${name})
endfunction()
