#include "config/settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"

#include "config/keys.hpp"

namespace fencepost::config {
namespace {

// The event pool can also be switched by a variable without the prefix of the keys.
constexpr std::string_view kEventPoolVariable = "TRANSFER_EVENT_POOL_ENABLED";
constexpr std::string_view kEventPoolKey = "transfer.event_pool_enabled";

// Fencepost's variables that are not keys: where commands find the configuration and the API, and the name by which
// the user starts this program.
constexpr std::string_view kOtherVariables[] = {"FENCEPOST_CONFIG", "FENCEPOST_URL", "FENCEPOST_API_KEY",
                                                "FENCEPOST_PROGRAM_NAME"};
constexpr std::string_view kTestPrefix = "FENCEPOST_TEST_";

bool is_other(std::string_view variable) {
  return std::ranges::find(kOtherVariables, variable) != std::end(kOtherVariables);
}

std::string with_file_suffix(std::string_view path) {
  return fmt::format("{}{}", path, kFileSuffix);
}

struct Target {
  std::string path;
  bool list;
};

void add_targets(const std::vector<Key>& keys, std::map<std::string, Target>& out) {
  for (const auto& key : keys) {
    out.emplace(environment_name(key.path), Target{key.path, key.list});
    if (!key.secret) continue;
    const auto path = with_file_suffix(key.path);
    out.emplace(environment_name(path), Target{path, false});
  }
}

// The index in FENCEPOST_CHAINS_3_NAME, if the variable is about this list.
std::optional<std::size_t> list_index(std::string_view variable, const ListSection& section) {
  const auto prefix = environment_name(section.path) + "_";
  if (!variable.starts_with(prefix)) return std::nullopt;
  const auto rest = variable.substr(prefix.size());
  const auto digits = rest.substr(0, rest.find('_'));
  std::size_t index = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = ec == std::errc() && end == digits.data() + digits.size();
  const bool canonical = digits.size() == 1 || !digits.starts_with('0');
  if (!whole || !canonical || index >= section.max_size) return std::nullopt;
  return index;
}

std::map<std::string, Target> known_variables(const std::map<std::string, std::string>& environment) {
  std::map<std::string, Target> out;
  add_targets(keys(), out);
  for (const auto& section : list_sections()) {
    std::set<std::size_t> indexes{0};  // index 0, so that there is always a name to suggest
    for (const auto& [variable, value] : environment) {
      if (const auto index = list_index(variable, section)) indexes.insert(*index);
    }
    for (const auto index : indexes) add_targets(section.keys(index), out);
  }
  return out;
}

// "; did you mean …?" with the nearest known variable, or nothing. Compares the names without the common prefix, which
// would make any two short names look alike.
std::string suggestion(std::string_view variable, const std::map<std::string, Target>& known) {
  std::vector<std::string_view> names;
  names.reserve(known.size());
  for (const auto& [name, target] : known) names.push_back(std::string_view(name).substr(kEnvironmentPrefix.size()));
  const auto guess = nearest(variable.substr(kEnvironmentPrefix.size()), names);
  return guess ? fmt::format("; did you mean {}{}?", kEnvironmentPrefix, *guess) : "";
}

}  // namespace

std::string Origin::text() const {
  return line > 0 ? fmt::format("{}:{}", name, line) : name;
}

void Problems::add(const Origin& origin, std::string_view key, std::string_view reason) {
  std::string text = origin.text();
  for (const auto part : {key, reason}) {
    if (part.empty()) continue;
    if (!text.empty()) text += ": ";
    text += part;
  }
  problems_.emplace(std::pair(origin.layer, origin.line), std::move(text));
}

Error Problems::to_error() const {
  auto message = fmt::format("{} problem{} in the configuration:", problems_.size(), problems_.size() == 1 ? "" : "s");
  for (const auto& [place, text] : problems_) message += "\n  " + text;
  return invalid("bad_config", std::move(message));
}

const Setting* Settings::find(const std::string& path) const {
  const auto found = values.find(path);
  return found == values.end() ? nullptr : &found->second;
}

bool Settings::is_mentioned(const std::string& path) const {
  const auto element = path.substr(0, path.find(']') + 1);  // "chains[0]", or nothing
  return is_set(path) || malformed.contains(path) || malformed.contains(with_file_suffix(path)) ||
         (!element.empty() && malformed.contains(element));
}

Origin Settings::origin(const std::string& path) const {
  const auto* setting = find(path);
  return setting == nullptr ? Origin{} : setting->origin;
}

void Settings::put(const std::string& path, Setting setting, Problems& problems) {
  auto key = path;
  if (setting.from_file) key.resize(key.size() - kFileSuffix.size());
  const auto [existing, added] = values.try_emplace(key, setting);
  if (added) return;
  const auto& first = existing->second;
  if (first.from_file == setting.from_file) {
    problems.add(setting.origin, path, fmt::format("is given twice; first at {}", first.origin.text()));
  } else {
    problems.add(setting.origin, path,
                 fmt::format("is given together with {}; choose one", first.from_file ? with_file_suffix(key) : key));
  }
}

void Settings::override_with(Settings other) {
  for (auto& [path, setting] : other.values) values.insert_or_assign(path, std::move(setting));
  for (auto& [path, size] : other.list_sizes) list_sizes.insert_or_assign(path, std::move(size));
  malformed.merge(other.malformed);
  for (auto& [path, origin] : other.elements) elements.insert_or_assign(path, std::move(origin));
}

Schema::Schema() {
  const auto add_keys = [&](const std::vector<Key>& keys) {
    for (const auto& key : keys) {
      add(pattern_of(key.path), {.list = key.list, .file = false});
      if (key.secret) add(pattern_of(with_file_suffix(key.path)), {.list = false, .file = true});
    }
  };
  add_keys(keys());
  for (const auto& section : list_sections()) add_keys(section.keys(0));
}

void Schema::add(const std::string& pattern, Leaf leaf) {
  leaves_.emplace(pattern, leaf);
  sections_.emplace("");
  for (auto dot = pattern.find('.'); dot != std::string::npos; dot = pattern.find('.', dot + 1)) {
    sections_.insert(pattern.substr(0, dot));
  }
}

const Schema::Leaf* Schema::leaf(const std::string& pattern) const {
  const auto found = leaves_.find(pattern);
  return found == leaves_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> Schema::names_below(const std::string& pattern) const {
  std::vector<std::string_view> out;
  const auto prefix = pattern.empty() ? "" : pattern + ".";
  for (const auto& [path, leaf] : leaves_) {
    if (!path.starts_with(prefix)) continue;
    const auto rest = std::string_view(path).substr(prefix.size());
    const auto name = rest.substr(0, rest.find_first_of(".["));
    if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string pattern_of(std::string_view path) {
  std::string out;
  bool in_index = false;
  for (const char c : path) {
    if (c == ']') in_index = false;
    if (!in_index) out += c;
    if (c == '[') in_index = true;
  }
  return out;
}

Settings read_environment(const std::map<std::string, std::string>& environment, Problems& problems,
                          std::vector<std::string>& warnings) {
  Settings out;
  const auto known = known_variables(environment);

  for (const auto& [variable, value] : environment) {
    if (variable == kEventPoolVariable && !environment.contains(environment_name(kEventPoolKey))) {
      out.put(std::string(kEventPoolKey), {{value}, {Origin::Layer::kEnvironment, variable}, false}, problems);
    }
    if (!variable.starts_with(kEnvironmentPrefix) || is_other(variable)) continue;
    if (variable.starts_with(kTestPrefix)) continue;
    const Origin origin{Origin::Layer::kEnvironment, variable};
    const auto found = known.find(variable);
    if (found == known.end()) {
      warnings.push_back(fmt::format("{}: no such key, ignored{}", variable, suggestion(variable, known)));
      continue;
    }
    const auto& [path, list] = found->second;
    auto items = list ? split_list(value) : std::vector{value};
    const bool from_file = path.ends_with(kFileSuffix);
    out.put(path, {std::move(items), origin, from_file}, problems);
  }
  return out;
}

Settings read_flags(const std::vector<ConfigFlag>& flags, const Schema& schema, Problems& problems) {
  Settings out;
  for (const auto& flag : flags) {
    const Origin origin{Origin::Layer::kFlag, flag.option};
    const auto* leaf = schema.leaf(pattern_of(flag.path));
    if (leaf == nullptr) {
      problems.add(origin, flag.path, "no such key");
      continue;
    }
    auto items = leaf->list ? split_list(flag.value) : std::vector{flag.value};
    out.put(flag.path, {std::move(items), origin, leaf->file}, problems);
  }
  return out;
}

std::vector<std::string> split_list(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(",\n"), text.size());
    auto item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto first = item.find_first_not_of(kSpace);
    if (first == std::string_view::npos) continue;
    out.emplace_back(item.substr(first, item.find_last_not_of(kSpace) - first + 1));
  }
  return out;
}

}  // namespace fencepost::config
