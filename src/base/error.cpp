#include "base/error.hpp"

#include <fmt/format.h>

namespace fencepost {

std::string Error::to_string() const {
  std::string out = fmt::format("{} [{}]", message, code);
  for (const auto& [key, value] : context) fmt::format_to(std::back_inserter(out), " {}={}", key, value);
  if (!cause.empty()) fmt::format_to(std::back_inserter(out), " cause={}", cause);
  return out;
}

Error error_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return internal("internal", e.what());
  }
}

}  // namespace fencepost
