#include "config/config.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.hpp"

#include "config/keys.hpp"
#include "config/settings.hpp"

namespace fencepost {
namespace config {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kMaxSecretBytes = 64 << 10;

// The file's content, or the errno of the failure; EFBIG if it is larger than `max_bytes`.
std::expected<std::string, int> read_whole_file(const std::string& path, std::size_t max_bytes) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::unexpected(errno != 0 ? errno : EIO);
  std::string text(max_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) return std::unexpected(errno != 0 ? errno : EIO);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > max_bytes) return std::unexpected(EFBIG);
  return text;
}

std::string reason_text(int error) {
  return std::generic_category().message(error);
}

class Loader {
 public:
  explicit Loader(const ConfigSources& sources) : sources_(sources) {
    settings_ = read_flags(sources.defaults, schema_, problems_);
    if (sources.file) settings_.override_with(read_yaml(*sources.file, schema_, problems_));
    settings_.override_with(read_environment(sources.environment, problems_, config_.warnings));
    settings_.override_with(read_flags(sources.flags, schema_, problems_));
  }

  Result<Config> load() {
    for (const auto& key : keys()) apply(key);
    for (const auto& section : list_sections()) apply_list(section);
    fill_in_name();
    for (const auto& path : sources_.required) check_required(path, {}, settings_, problems_);
    settle(config_, settings_, problems_);
    if (sources_.opens_keys) check_password(config_, settings_, problems_);
    if (!problems_.empty()) return fail(error());
    return std::move(config_);
  }

 private:
  void apply(const Key& key) {
    const auto* setting = settings_.find(key.path);
    if (setting == nullptr) return;
    auto items = setting->items;
    if (setting->from_file) {
      const auto content = read_secret_file(key, *setting);
      if (!content) return;
      items = key.list ? split_list(*content) : std::vector{*content};
    }
    if (const auto done = key.set(config_, items); !done) {
      problems_.add(setting->origin, key.path, done.error().message);
    }
  }

  std::optional<std::string> read_secret_file(const Key& key, const Setting& setting) {
    const auto& name = setting.items.front();
    auto content = read_whole_file(name, kMaxSecretBytes);
    if (!content) {
      problems_.add(setting.origin, fmt::format("{}{}", key.path, kFileSuffix),
                    fmt::format("cannot read {}: {}", quote(name, 256), reason_text(content.error())));
      return std::nullopt;
    }
    if (content->ends_with('\n')) content->pop_back();
    if (content->ends_with('\r')) content->pop_back();
    return std::move(*content);
  }

  // A list has the entries of the file, followed by those that environment and flags append without a gap.
  void apply_list(const ListSection& section) {
    std::size_t size = 0;
    if (const auto written = settings_.list_sizes.find(section.path); written != settings_.list_sizes.end()) {
      size = written->second.first;
      if (size > section.max_size) {
        problems_.add(written->second.second, section.path,
                      fmt::format("expected at most {} entries, got {}", section.max_size, size));
        return;
      }
    }
    while (size < section.max_size && is_any_set(section, size)) ++size;
    report_gaps(section, size);
    section.resize(config_, size);
    for (std::size_t index = 0; index < size; ++index) {
      for (const auto& key : section.keys(index)) apply(key);
    }
  }

  bool is_any_set(const ListSection& section, std::size_t index) const {
    return std::ranges::any_of(section.keys(index), [&](const Key& key) { return settings_.is_set(key.path); });
  }

  // Reports settings of environment and flags for entries that do not follow the last one.
  void report_gaps(const ListSection& section, std::size_t size) {
    const auto prefix = section.path + "[";
    for (const auto& [path, setting] : settings_.values) {
      if (!path.starts_with(prefix)) continue;
      std::size_t index = 0;
      std::from_chars(path.data() + prefix.size(), path.data() + path.size(), index);
      if (index < size) continue;
      problems_.add(setting.origin, path, fmt::format("leaves a gap: the next entry is {}[{}]", section.path, size));
    }
  }

  // Includes the warnings: a missing key may have been set under a mistyped name.
  Error error() const {
    auto out = problems_.to_error();
    for (const auto& warning : config_.warnings) out.message += "\n  warning: " + warning;
    return out;
  }

  void fill_in_name() {
    if (!config_.node.name.empty()) return;
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) config_.node.name = name.data();
    if (config_.node.name.empty()) problems_.add({}, "node.name", "is required, because this host has no host name");
  }

  const ConfigSources& sources_;
  Schema schema_;
  Problems problems_;
  Settings settings_;
  Config config_;
};

}  // namespace
}  // namespace config

Result<ConfigFile> read_config_file(const std::string& path) {
  auto text = config::read_whole_file(path, config::kMaxConfigBytes);
  if (text) return ConfigFile{path, std::move(*text)};
  const auto message = fmt::format("cannot read {}: {}", quote(path, 256), config::reason_text(text.error()));
  return fail(text.error() == ENOENT ? not_found("no_config_file", message) : invalid("bad_config_file", message));
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

Result<Config> load_config(const ConfigSources& sources) {
  return config::Loader(sources).load();
}

}  // namespace fencepost
