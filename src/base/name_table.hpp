// The names of an enum's values in one table: the text that is stored, sent and logged for each value.
//
//   enum class Colour { kRed, kGreen };
//
//   inline constexpr auto kColours = name_table<Colour>({
//       {Colour::kRed,   "red",   "Stop."},
//       {Colour::kGreen, "green", "Go."},
//   });
//
// The rows come in the order of the enumerators (0, 1, 2, …). A row out of order or a repeated name does not compile,
// and the compiler's message names the rule. (A table made at run time throws instead.) For states with transitions see
// lifecycle.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace fencepost {

template <class Enum>
struct NameRow {
  Enum value;
  std::string_view name;
  std::string_view meaning = {};  // one sentence for a person
};

template <class Enum, std::size_t N>
class NameTable {
 public:
  explicit constexpr NameTable(const NameRow<Enum> (&rows)[N]) {
    for (std::size_t i = 0; i < N; ++i) {
      if (static_cast<std::size_t>(rows[i].value) != i) broken("rows must come in the order of the enumerators");
      for (std::size_t j = 0; j < i; ++j) {
        if (rows[j].name == rows[i].name) broken("names must differ");
      }
      rows_[i] = rows[i];
    }
  }

  static constexpr std::size_t size() { return N; }

  constexpr std::string_view name(Enum value) const { return rows_[static_cast<std::size_t>(value)].name; }
  constexpr std::string_view meaning(Enum value) const { return rows_[static_cast<std::size_t>(value)].meaning; }

  // nullopt for a name that is not in the table.
  constexpr std::optional<Enum> find(std::string_view name) const {
    for (const auto& row : rows_) {
      if (row.name == name) return row.value;
    }
    return std::nullopt;
  }

  // In the order of the table, as all below.
  constexpr std::array<std::string_view, N> names() const {
    std::array<std::string_view, N> out;
    for (std::size_t i = 0; i < N; ++i) out[i] = rows_[i].name;
    return out;
  }

  constexpr auto begin() const { return rows_.begin(); }
  constexpr auto end() const { return rows_.end(); }

 private:
  // A throw is not a constant expression, so a broken rule is a compile error.
  [[noreturn]] static void broken(const char* rule) { throw std::logic_error(rule); }

  std::array<NameRow<Enum>, N> rows_{};
};

template <class Enum, std::size_t N>
constexpr NameTable<Enum, N> name_table(const NameRow<Enum> (&rows)[N]) {
  return NameTable<Enum, N>(rows);
}

}  // namespace fencepost
