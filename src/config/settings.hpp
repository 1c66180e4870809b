// The user's settings before they are parsed: texts by key, each with its origin.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

#include "config/config.hpp"

namespace fencepost::config {

struct Origin {
  enum class Layer { kFile, kEnvironment, kFlag, kNone };
  Layer layer = Layer::kNone;
  std::string name;  // of the file, the variable or the option
  int line = 0;      // in the file

  // "fencepost.yaml:12", "FENCEPOST_HTTP_PORT", "--port", or nothing.
  std::string text() const;
};

// Collects all problems, to report them together.
class Problems {
 public:
  // `key` is empty for a problem that concerns no particular key.
  void add(const Origin& origin, std::string_view key, std::string_view reason);

  bool empty() const { return problems_.empty(); }
  // "2 problems in the configuration:" and a line for each: the file's by line, then environment, flags, the rest.
  Error to_error() const;

 private:
  std::multimap<std::pair<Origin::Layer, int>, std::string> problems_;  // by layer and line
};

struct Setting {
  std::vector<std::string> items;  // one, unless the key takes a list
  Origin origin;
  bool from_file = false;  // given as `<key>_file`: the text is the name of a file that holds the value
};

// The settings of one source.
struct Settings {
  std::map<std::string, Setting> values;                             // by path, without "_file"
  std::map<std::string, std::pair<std::size_t, Origin>> list_sizes;  // sizes of the lists in the file, by path
  std::map<std::string, Origin> elements;                            // entries of those lists, by path: "chains[0]"

  std::set<std::string> malformed;  // paths whose value is given but could not be read

  // nullptr if the key is not set.
  const Setting* find(const std::string& path) const;
  bool is_set(const std::string& path) const { return find(path) != nullptr; }
  // True also for a value that could not be read: it has been reported and is not missing.
  bool is_mentioned(const std::string& path) const;
  // Where the key is set; an empty Origin if it is not.
  Origin origin(const std::string& path) const;

  // Adds a value under the path as the user wrote it. A second value for the same key is a problem.
  void put(const std::string& path, Setting setting, Problems& problems);
  // The values of `other` win.
  void override_with(Settings other);
};

// The shape of the table of keys. A pattern is a path with the indexes left out: "chains[].name".
class Schema {
 public:
  Schema();

  struct Leaf {
    bool list;
    bool file;  // the `_file` form of a secret
  };
  // nullptr if the pattern is not a key.
  const Leaf* leaf(const std::string& pattern) const;
  bool is_section(const std::string& pattern) const { return sections_.contains(pattern); }
  bool is_list(const std::string& pattern) const { return sections_.contains(pattern + "[]"); }
  // The names one level below a section, for suggestions.
  std::vector<std::string_view> names_below(const std::string& pattern) const;

 private:
  void add(const std::string& pattern, Leaf leaf);

  std::map<std::string, Leaf> leaves_;
  std::set<std::string> sections_;
};

std::string pattern_of(std::string_view path);

// Each adds invalid settings to `problems` and returns the valid ones.
Settings read_yaml(const ConfigFile& file, const Schema& schema, Problems& problems);
// A FENCEPOST_ variable that no key has is a warning, not a problem: other programs may share the prefix.
Settings read_environment(const std::map<std::string, std::string>& environment, Problems& problems,
                          std::vector<std::string>& warnings);
Settings read_flags(const std::vector<ConfigFlag>& flags, const Schema& schema, Problems& problems);

// Checks the rules between keys (checks.cpp) and adds violations to `problems`. Also decides which kind of fixed fees
// a chain has if it overrides those of all chains.
void settle(Config& config, const Settings& settings, Problems& problems);
// Adds a problem if no source mentions the key. `where`: the place that lacks it.
void check_required(const std::string& path, const Origin& where, const Settings& settings, Problems& problems);
// For commands that open the key files: adds a problem if their password is not set.
void check_password(const Config& config, const Settings& settings, Problems& problems);

// Splits "a, b" at commas and line breaks into trimmed texts; leaves out empty ones.
std::vector<std::string> split_list(std::string_view text);

}  // namespace fencepost::config
