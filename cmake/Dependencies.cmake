# All third-party libraries; each is a Debian package.

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(CURL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(simdjson REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SECP256K1 REQUIRED IMPORTED_TARGET libsecp256k1)
pkg_check_modules(NATS REQUIRED IMPORTED_TARGET libnats)  # find_package(cnats) fails: its file names a missing library
pkg_check_modules(CRYPTOPP REQUIRED IMPORTED_TARGET libcrypto++)
pkg_check_modules(IDN2 REQUIRED IMPORTED_TARGET libidn2)
pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)

if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# Compile Asio and Beast once instead of in every file that uses them.
add_library(fencepost_asio STATIC "${CMAKE_SOURCE_DIR}/src/runtime/asio_beast.cpp")
target_compile_definitions(fencepost_asio PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_VISIBILITY)
target_include_directories(fencepost_asio SYSTEM PUBLIC ${Boost_INCLUDE_DIRS})
target_link_libraries(fencepost_asio
  PUBLIC Boost::headers Boost::json Boost::url OpenSSL::SSL OpenSSL::Crypto Threads::Threads
  PRIVATE fencepost_flags)
