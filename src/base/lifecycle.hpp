// A state machine as a table of states and their exits.
//
//   enum class DoorState { kOpen, kClosed, kGone };
//
//   inline constexpr auto kDoor = lifecycle<DoorState>("door", {
//       {DoorState::kOpen,   "OPEN",   {{DoorState::kClosed, "pushed"}}},
//       {DoorState::kClosed, "CLOSED", {{DoorState::kOpen, "pulled"}, DoorState::kGone}},
//       {DoorState::kGone,   "GONE",   {}},
//   });
//
// The rows come in the order of the enumerators (0, 1, 2, …); the first is the initial state; a state without
// exits is terminal. An exit marked kReopens does not count: only a caller that asks `reopens` may take it. The
// compiler checks the table, and its message names the broken rule (a table made at run time throws instead):
//   - rows are in order; names differ and consist of letters, digits and underscores
//   - the exits of a state differ and lead to states of the table
//   - every state can be reached from the first one, and can reach a terminal one
//
// The rules (`allowed`) and the documentation (`mermaid`) come from the same table.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost {

// Marks an exit by which a person takes a terminal state back. The state stays terminal for everyone else.
enum class ExitKind { kNormal, kReopens };

// One transition out of a state; `when` labels the arrow in the diagram.
template <class State>
struct LifecycleExit {
  constexpr LifecycleExit(State to, std::string_view label = {}, ExitKind of = ExitKind::kNormal)
      : state(to), when(label), kind(of) {}

  State state;
  std::string_view when;
  ExitKind kind;
};

template <class State>
struct LifecycleRow {
  State state;
  std::string_view name;  // as stored in the database and shown by the API
  std::initializer_list<LifecycleExit<State>> exits;
};

template <class State, std::size_t N>
class Lifecycle {
 public:
  constexpr Lifecycle(std::string_view machine, const LifecycleRow<State> (&rows)[N]) : machine_(machine) {
    for (std::size_t i = 0; i < N; ++i) {
      if (index(rows[i].state) != i) broken("rows must come in the order of the enumerators");
      names_[i] = rows[i].name;
      for (const auto& exit : rows[i].exits) add_exit(i, exit);
    }
    check_names();
    check_reach();
  }

  static constexpr std::size_t size() { return N; }
  constexpr std::string_view machine() const { return machine_; }
  static constexpr State initial() { return State{}; }

  // Never true for an exit marked kReopens.
  constexpr bool allowed(State from, State to) const { return exits_[index(from)][index(to)]; }
  constexpr bool reopens(State from, State to) const { return reopens_[index(from)][index(to)]; }

  constexpr bool terminal(State state) const {
    for (const bool exit : exits_[index(state)]) {
      if (exit) return false;
    }
    return true;
  }

  constexpr std::string_view name(State state) const { return names_[index(state)]; }

  // nullopt for a name that is not in the table.
  constexpr std::optional<State> find(std::string_view name) const {
    for (std::size_t i = 0; i < N; ++i) {
      if (names_[i] == name) return static_cast<State>(i);
    }
    return std::nullopt;
  }

  // In the order of the table. Views into the table, which is constant data: they never dangle.
  std::vector<std::string_view> names() const { return {names_.begin(), names_.end()}; }
  std::vector<std::string_view> from_states(State to) const {
    return names_where([&](State from) { return allowed(from, to); });
  }
  std::vector<std::string_view> terminal_states() const {
    return names_where([&](State state) { return terminal(state); });
  }

  // A Mermaid stateDiagram-v2, ending in a newline.
  std::string mermaid() const {
    std::string out = "stateDiagram-v2\n";
    append_arrow(out, "[*]", names_[0], {});
    for (std::size_t from = 0; from < N; ++from) {
      for (std::size_t to = 0; to < N; ++to) {
        if (exits_[from][to] || reopens_[from][to]) append_arrow(out, names_[from], names_[to], labels_[from][to]);
      }
      if (terminal(static_cast<State>(from))) append_arrow(out, names_[from], "[*]", {});
    }
    return out;
  }

 private:
  static constexpr std::size_t index(State state) { return static_cast<std::size_t>(state); }

  // A throw is not a constant expression, so a broken rule is a compile error.
  [[noreturn]] static void broken(const char* rule) { throw std::logic_error(rule); }

  constexpr void add_exit(std::size_t from, const LifecycleExit<State>& exit) {
    const auto to = index(exit.state);
    if (to >= N) broken("exits must lead to states of the table");
    if (exits_[from][to] || reopens_[from][to]) broken("exits of a state must differ");
    (exit.kind == ExitKind::kReopens ? reopens_ : exits_)[from][to] = true;
    labels_[from][to] = exit.when;
  }

  constexpr void check_names() const {
    for (std::size_t i = 0; i < N; ++i) {
      if (names_[i].empty()) broken("names must be letters digits and underscores");
      for (const char c : names_[i]) {
        const bool fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        if (!fine) broken("names must be letters digits and underscores");
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (names_[i] == names_[j]) broken("names must differ");
      }
    }
  }

  constexpr void check_reach() const {
    // Warshall's algorithm: reach[a][b] is true once a path from a to b is known.
    auto reach = exits_;
    for (std::size_t via = 0; via < N; ++via) {
      for (std::size_t a = 0; a < N; ++a) {
        for (std::size_t b = 0; b < N; ++b) reach[a][b] = reach[a][b] || (reach[a][via] && reach[via][b]);
      }
    }
    for (std::size_t i = 0; i < N; ++i) {
      if (i > 0 && !reach[0][i]) broken("every state must be reachable from the first");
      bool ends = false;
      for (std::size_t j = 0; j < N; ++j) {
        ends = ends || (terminal(static_cast<State>(j)) && (i == j || reach[i][j]));
      }
      if (!ends) broken("every state must be able to reach a terminal one");
    }
  }

  template <class Predicate>
  std::vector<std::string_view> names_where(Predicate wanted) const {
    std::vector<std::string_view> out;
    for (std::size_t i = 0; i < N; ++i) {
      if (wanted(static_cast<State>(i))) out.push_back(names_[i]);
    }
    return out;
  }

  static void append_arrow(std::string& out, std::string_view from, std::string_view to, std::string_view label) {
    out.append("    ").append(from).append(" --> ").append(to);
    if (!label.empty()) out.append(" : ").append(label);
    out += '\n';
  }

  std::string_view machine_;
  std::array<std::string_view, N> names_{};
  std::array<std::array<bool, N>, N> exits_{};
  std::array<std::array<bool, N>, N> reopens_{};
  std::array<std::array<std::string_view, N>, N> labels_{};
};

template <class State, std::size_t N>
constexpr Lifecycle<State, N> lifecycle(std::string_view machine, const LifecycleRow<State> (&rows)[N]) {
  return Lifecycle<State, N>(machine, rows);
}

}  // namespace fencepost
