// Reads settings from a YAML file, and writes a configuration as YAML.
#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/text.hpp"

#include "config/keys.hpp"
#include "config/settings.hpp"

namespace fencepost {
namespace config {
namespace {

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

std::string_view describe(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      return "nothing";
  }
  std::unreachable();
}

// Walks the document along the schema, so that every unknown key is reported. Values are taken as text: YAML's own
// types do not apply.
class Walker {
 public:
  Walker(const std::string& file, const Schema& schema, Problems& problems)
      : file_(file), schema_(schema), problems_(problems) {}

  void walk_section(const YAML::Node& node, const std::string& path, int line) {
    if (node.IsNull()) return;  // "http:" with every line below it commented out
    if (!node.IsMap()) return reject(line, path, fmt::format("expected a map of keys, got {}", describe(node)));
    for (const auto& entry : node) {
      const auto key_line = line_of(entry.first);
      if (!entry.first.IsScalar() || !is_plain_name(entry.first.Scalar())) {
        const auto shown = entry.first.IsScalar() ? quote(entry.first.Scalar()) : std::string(describe(entry.first));
        add(key_line, path, fmt::format("expected a key, got {}", shown));
        continue;
      }
      walk(entry.second, path, entry.first.Scalar(), key_line);
    }
  }

  Settings take() { return std::move(settings_); }

 private:
  void walk(const YAML::Node& node, const std::string& parent, const std::string& name, int line) {
    const auto path = parent.empty() ? name : fmt::format("{}.{}", parent, name);
    const auto pattern = pattern_of(path);
    if (const auto* leaf = schema_.leaf(pattern)) return read_value(node, path, *leaf, line);
    if (schema_.is_section(pattern)) return walk_section(node, path, line);
    if (schema_.is_list(pattern)) return walk_list(node, path, line);
    add(line, path, "no such key" + did_you_mean(name, schema_.names_below(pattern_of(parent))));
  }

  void walk_list(const YAML::Node& node, const std::string& path, int line) {
    if (node.IsNull()) return;
    if (!node.IsSequence()) return reject(line, path, fmt::format("expected a list, got {}", describe(node)));
    const auto [first, added] = settings_.list_sizes.try_emplace(path, node.size(), origin(line));
    if (!added) return add(line, path, fmt::format("is given twice; first at {}", first->second.second.text()));
    std::size_t index = 0;
    for (const auto& element : node) {
      const auto element_path = fmt::format("{}[{}]", path, index++);
      const auto element_line = std::max(line, line_of(element));  // an empty element has no line of its own
      settings_.elements.emplace(element_path, origin(element_line));
      walk_section(element, element_path, element_line);
    }
  }

  void read_value(const YAML::Node& node, const std::string& path, const Schema::Leaf& leaf, int line) {
    if (node.IsNull()) return reject(line, path, "has no value");
    std::vector<std::string> items;
    if (node.IsScalar()) {
      items.push_back(node.Scalar());
    } else if (leaf.list && node.IsSequence()) {
      for (const auto& element : node) {
        if (!element.IsScalar()) {
          return reject(std::max(line, line_of(element)), path,
                        fmt::format("expected a list of single values, got {} in it", describe(element)));
        }
        items.push_back(element.Scalar());
      }
    } else {
      const auto* expected = leaf.list ? "a list" : "a single value";
      return reject(line, path, fmt::format("expected {}, got {}", expected, describe(node)));
    }
    settings_.put(path, {std::move(items), origin(line), leaf.file}, problems_);
  }

  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }
  Origin origin(int line) const { return {Origin::Layer::kFile, file_, line}; }
  void reject(int line, const std::string& path, std::string_view reason) {
    settings_.malformed.insert(path);
    add(line, path.empty() ? "the file" : path, reason);
  }
  void add(int line, std::string_view key, std::string_view reason) { problems_.add(origin(line), key, reason); }

  const std::string& file_;
  const Schema& schema_;
  Problems& problems_;
  Settings settings_;
};

}  // namespace

Settings read_yaml(const ConfigFile& file, const Schema& schema, Problems& problems) {
  try {
    const auto documents = YAML::LoadAll(file.text);
    if (documents.size() > 1) {
      problems.add({Origin::Layer::kFile, file.name, documents[1].Mark().line + 1}, {},
                   "expected one YAML document, but a second one begins here");
      return {};
    }
    Walker walker(file.name, schema, problems);
    if (!documents.empty()) walker.walk_section(documents[0], "", 1);
    return walker.take();
  } catch (const YAML::Exception& e) {
    problems.add({Origin::Layer::kFile, file.name, e.mark.line + 1}, {}, fmt::format("not valid YAML: {}", e.msg));
    return {};
  }
}

namespace {

std::string name_below(std::string_view path, std::string_view section) {
  return std::string(section.empty() ? path : path.substr(section.size() + 1));
}

// Puts the value of a key into the tree, below the node of `section`.
void write_key(const YAML::Node& section_node, std::string_view section, const Key& key, const Config& config) {
  const auto items = key.get(config);
  // An empty list of secrets is not set; any other empty list is a value.
  if (items.empty() ? key.secret || !key.list : items.size() == 1 && items.front().empty()) return;
  auto name = name_below(key.path, section);
  YAML::Node node = section_node;
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.')) {
    node.reset(node[name.substr(0, dot)]);
    name.erase(0, dot + 1);
  }
  if (!key.list) {
    node[name] = items.front();
  } else {
    node[name] = YAML::Node(YAML::NodeType::Sequence);
    for (const auto& item : items) node[name].push_back(item);
  }
}

}  // namespace
}  // namespace config

std::string Config::to_yaml() const {
  YAML::Node root(YAML::NodeType::Map);
  for (const auto& key : config::keys()) config::write_key(root, "", key, *this);
  for (const auto& section : config::list_sections()) {
    for (std::size_t i = 0; i < section.size(*this); ++i) {
      YAML::Node element(YAML::NodeType::Map);
      const auto path = fmt::format("{}[{}]", section.path, i);
      for (const auto& key : section.keys(i)) config::write_key(element, path, key, *this);
      root[section.path].push_back(element);
    }
  }
  YAML::Emitter out;
  out << root;
  return std::string(out.c_str()) + "\n";
}

}  // namespace fencepost
