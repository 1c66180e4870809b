// For tests of code that reads requests.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "http/message.hpp"

namespace fencepost::http::testing {

inline Request get(std::string_view target) {
  Request request;
  EXPECT_TRUE(request.set_target(target)) << target;
  return request;
}

// The error of a call that must fail.
template <class F>
Error error_from(F call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.error();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// The error's context value for `key`; "" when there is none.
inline std::string context(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace fencepost::http::testing
