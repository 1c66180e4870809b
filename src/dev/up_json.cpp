#include "dev/up_json.hpp"

#include <string>

#include <fmt/format.h>

#include "base/json.hpp"
#include "runtime/read_file.hpp"

namespace fencepost {

std::filesystem::path up_json_file(const std::filesystem::path& data_dir) {
  return data_dir / "up.json";
}

std::filesystem::path mail_dir(const std::filesystem::path& data_dir) {
  return data_dir / "mail";
}

Result<boost::json::value> read_up_json(const std::filesystem::path& data_dir) {
  const auto file = up_json_file(data_dir);
  const std::string text = read_file(file);
  if (text.empty()) {
    return fail(not_found(
        "not_up",
        fmt::format("there is no {}: check that 'fencepost up' is running in that directory", file.string())));
  }
  return parse_json(text, text.size());
}

}  // namespace fencepost
