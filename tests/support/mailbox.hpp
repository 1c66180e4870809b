// The mails that nodes wrote as files (email.transport: file), as a test reads them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "notify/model/eml_reader.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

// The code in a mail; empty if its text has not exactly one number of six digits.
inline std::string code_in(const notify::ReadMail& mail) {
  const std::regex number("(^|[^0-9])([0-9]{6})($|[^0-9])");
  std::smatch found;
  if (!std::regex_search(mail.text, found, number)) return "";
  const auto code = found[2].str();
  return std::regex_search(found.suffix().first, mail.text.cend(), number) ? "" : code;
}

class Mailbox {
 public:
  const std::filesystem::path& directory() const { return directory_; }

  // In the order of their names: by time.
  std::vector<notify::ReadMail> mails() const {
    std::vector<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, none)) {
      if (entry.path().extension() == ".eml") paths.push_back(entry.path());
    }
    std::ranges::sort(paths);
    std::vector<notify::ReadMail> out;
    for (const auto& path : paths) {
      auto mail = notify::read_eml(read_file(path));
      if (!mail) throw Exception(mail.error());
      out.push_back(std::move(*mail));
    }
    return out;
  }
  std::vector<notify::ReadMail> to(std::string_view address) const {
    auto out = mails();
    std::erase_if(out, [&](const auto& mail) { return mail.to != address; });
    return out;
  }
  // The newest code for the address, once it has got `count` codes; empty if it does not get them.
  std::string code(std::string_view address, std::size_t count = 1) const {
    std::vector<notify::ReadMail> codes;
    const bool came = eventually([&] {
      codes = to(address);
      std::erase_if(codes, [](const auto& mail) { return !mail.message_id.starts_with("code-"); });
      return codes.size() >= count;
    });
    return came ? code_in(codes.back()) : "";
  }

 private:
  TempDir dir_{"mail"};
  std::filesystem::path directory_ = dir_ / "mails";
};

}  // namespace fencepost::test
