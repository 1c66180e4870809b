// Text for a terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::cli {

// Makes text from a chain, a caller or a server safe for a terminal: control characters become spaces, invalid UTF-8
// becomes U+FFFD.
std::string printable(std::string_view text);

// The columns that the text takes: two for a wide character such as 漢, none for a combining one.
std::size_t columns_of(std::string_view text);

// At most `columns` columns; "…" stands for the rest.
std::string shortened(std::string_view text, std::size_t columns);

// "0x70997970…79c8"; shorter text stays unchanged.
std::string short_hex(std::string_view hex);

// The width of output that is not a terminal: a file or a pipe gets everything.
inline constexpr std::size_t kFullWidth = std::numeric_limits<std::size_t>::max();

// The columns of the terminal that stdout is; kFullWidth if it is none.
std::size_t terminal_columns();

struct TableColumn {
  // Implicit, so that a list of headers can be written as texts.
  TableColumn(const char* name, int order = 0, std::size_t least = 0) : header(name), rank(order), least_width(least) {}

  std::string header;
  int rank;                 // 0: always shown; 1: the next to be shown where it fits, and so on
  std::size_t least_width;  // its cells may be shortened to this, to keep other columns; 0: they may not
};

// Columns as wide as their widest cell, two spaces between them, none at the end of a line.
class TextTable {
 public:
  explicit TextTable(const std::vector<TableColumn>& columns);

  // As many cells as there are columns, made printable here.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // The width of the widest line if nothing is dropped.
  std::size_t full_width() const;
  // No line is wider than `width`: columns that do not fit are left out, the least important first, then cells are
  // shortened. If the columns of rank 0 alone are too wide, their cells are shortened, too.
  std::string text(std::size_t width = kFullWidth) const;

 private:
  struct Shown;
  std::vector<Shown> all_columns() const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  // the first is the headers
};

// The text with a line break before each word that would go beyond `width`; `indent` spaces begin each further line.
// A word that is wider than a line stays whole, so that it can be copied.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// "name   value" lines; lines without a value are left out.
class FactList {
 public:
  void add(std::string name, std::string_view value);
  std::string text(std::size_t width = kFullWidth) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace fencepost::cli
