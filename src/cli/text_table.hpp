// Text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::cli {

// Makes text from a chain, a caller or a server safe for a terminal: control characters become spaces, invalid UTF-8
// becomes U+FFFD.
std::string printable(std::string_view text);

// At most `columns` characters; "…" stands for the rest.
std::string shortened(std::string_view text, std::size_t columns);

// "0x70997970…79c8"; shorter text stays unchanged.
std::string short_hex(std::string_view hex);

// Columns as wide as their widest cell, two spaces between them, none at the end of a line.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headers) : rows_{std::move(headers)} {}

  // As many cells as there are headers, made printable here.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the headers
};

// "name   value" lines; lines without a value are left out.
class FactList {
 public:
  void add(std::string name, std::string_view value);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace fencepost::cli
