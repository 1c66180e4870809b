#include "http/router.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "base/id_text.hpp"
#include "base/uuid.hpp"

namespace fencepost::http {
namespace {

constexpr std::size_t kVerbCount = 7;
constexpr std::size_t kNoRoute = static_cast<std::size_t>(-1);
constexpr std::size_t kMaxSegments = 32;

enum class Type { kText, kId, kUuid, kSecret, kRest };

constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes{
    {{"", Type::kText}, {"id", Type::kId}, {"uuid", Type::kUuid}, {"secret", Type::kSecret}, {"rest", Type::kRest}}};

constexpr std::string_view description(Type type) {
  switch (type) {
    case Type::kText:
    case Type::kSecret:
      return "text";
    case Type::kId:
      return kIdForm;
    case Type::kUuid:
      return "a UUID";
    case Type::kRest:
      return "a path without '..'";
  }
  std::unreachable();
}

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const auto segment = path.substr(0, end);
    if (segment == ".." || segment == ".") return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

// The value of a parameter in the form that handlers get; nothing when it does not match the type.
std::optional<std::string> accept(Type type, std::string_view raw) {
  auto decoded = percent_decode(raw);
  if (!decoded || decoded->empty()) return std::nullopt;
  auto& text = *decoded;
  switch (type) {
    case Type::kText:
    case Type::kSecret:
      return std::move(text);
    case Type::kId:
      if (!parse_id(text)) return std::nullopt;
      return std::move(text);
    case Type::kUuid: {
      const auto uuid = Uuid::parse(text);
      return uuid ? std::optional(uuid->to_string()) : std::nullopt;
    }
    case Type::kRest:
      if (has_dot_segment(text)) return std::nullopt;
      return std::move(text);
  }
  std::unreachable();
}

Exception bad_route(std::string_view pattern, std::string_view why) {
  return Exception(internal("bad_route", fmt::format("route {}: {}", pattern, why)));
}

struct Parameter {
  std::string name;
  Type type;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

Parameter parse_parameter(std::string_view pattern, std::string_view segment) {
  const auto inner = segment.substr(1, segment.size() - 2);
  const auto colon = inner.find(':');
  const auto name = inner.substr(0, colon);
  const auto type = colon == std::string_view::npos ? std::string_view() : inner.substr(colon + 1);
  const bool good_name = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!good_name) throw bad_route(pattern, fmt::format("bad parameter name '{}'", name));
  const auto known = std::ranges::find(kTypes, type, &std::pair<std::string_view, Type>::first);
  if (known == kTypes.end() || (colon != std::string_view::npos && type.empty())) {
    throw bad_route(pattern, fmt::format("unknown parameter type '{}'", type));
  }
  return {std::string(name), known->second};
}

}  // namespace

struct Router::Node {
  std::unordered_map<std::string, std::unique_ptr<Node>, Hash, std::equal_to<>> literals;
  std::optional<Parameter> parameter;
  std::unique_ptr<Node> parameter_child;
  std::array<std::size_t, kVerbCount> routes = filled();

  static std::array<std::size_t, kVerbCount> filled() {
    std::array<std::size_t, kVerbCount> none{};
    none.fill(kNoRoute);
    return none;
  }

  bool has_route() const {
    return std::ranges::any_of(routes, [](std::size_t index) { return index != kNoRoute; });
  }

  Node& child(std::string_view pattern, std::string_view segment) {
    if (!segment.starts_with('{')) {
      if (segment.empty() || segment.find_first_of("{}%?#") != std::string_view::npos) {
        throw bad_route(pattern, fmt::format("bad segment '{}'", segment));
      }
      auto& slot = literals[std::string(segment)];
      if (!slot) slot = std::make_unique<Node>();
      return *slot;
    }
    if (!segment.ends_with('}')) throw bad_route(pattern, fmt::format("bad segment '{}'", segment));
    auto wanted = parse_parameter(pattern, segment);
    if (parameter && *parameter != wanted) {
      throw bad_route(pattern, fmt::format("{} conflicts with {{{}}} of another route", segment, parameter->name));
    }
    parameter = std::move(wanted);
    if (!parameter_child) parameter_child = std::make_unique<Node>();
    return *parameter_child;
  }
};

namespace {

// One lookup. Parameters stay views into the path until a route is found, so that backtracking from a literal costs
// nothing.
template <class Node>
class Walk {
 public:
  // The first full match, or nullptr. Stores a value that does not match its parameter's type in `bad`.
  const Node* find(const Node& node, std::string_view rest) {
    if (rest.empty()) return node.has_route() ? &node : nullptr;
    if (depth_ == kMaxSegments) return nullptr;
    rest.remove_prefix(1);  // the slash
    const auto end = std::min(rest.find('/'), rest.size());
    const auto segment = rest.substr(0, end);
    ++depth_;
    const Node* found = literal(node, segment, rest.substr(end));
    if (found == nullptr && node.parameter) found = parameter(node, segment, rest);
    --depth_;
    return found;
  }

  std::vector<std::pair<std::string_view, std::string>> values;  // in the reverse order of the path
  std::optional<Error> bad;
  std::optional<std::string> secret;

 private:
  const Node* literal(const Node& node, std::string_view segment, std::string_view rest) {
    if (segment.find('%') == std::string_view::npos) return descend(node, segment, rest);
    const auto decoded = percent_decode(segment);
    return decoded ? descend(node, *decoded, rest) : nullptr;
  }

  const Node* descend(const Node& node, std::string_view segment, std::string_view rest) {
    const auto child = node.literals.find(segment);
    return child == node.literals.end() ? nullptr : find(*child->second, rest);
  }

  const Node* parameter(const Node& node, std::string_view segment, std::string_view rest) {
    const bool takes_rest = node.parameter->type == Type::kRest;
    const auto raw = takes_rest ? rest : segment;
    const Node* found = find(*node.parameter_child, takes_rest ? std::string_view() : rest.substr(segment.size()));
    if (found == nullptr || raw.empty()) return nullptr;
    auto value = accept(node.parameter->type, raw);
    if (!value) {
      const bool hidden = node.parameter->type == Type::kSecret;
      bad = bad_parameter(node.parameter->name, description(node.parameter->type), hidden ? "***" : raw);
      return nullptr;
    }
    if (node.parameter->type == Type::kSecret) secret = *value;
    values.emplace_back(node.parameter->name, std::move(*value));
    return found;
  }

  std::size_t depth_ = 0;
};

std::string allow_list(const std::array<std::size_t, kVerbCount>& routes) {
  std::string allow;
  for (std::size_t i = 0; i < kVerbCount; ++i) {
    const auto verb = static_cast<Verb>(i);
    const bool head_by_get = verb == Verb::kHead && routes[static_cast<std::size_t>(Verb::kGet)] != kNoRoute;
    if (routes[i] == kNoRoute && !head_by_get && verb != Verb::kOptions) continue;
    if (!allow.empty()) allow += ", ";
    allow += to_string(verb);
  }
  return allow;
}

}  // namespace

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::add(Route route) {
  const std::string_view pattern = route.pattern;
  if (!pattern.starts_with('/')) throw bad_route(pattern, "must start with '/'");
  if (route.verb == Verb::kOther || !route.handler) throw bad_route(pattern, "needs a verb and a handler");
  Node* node = root_.get();
  auto rest = pattern == "/" ? std::string_view() : pattern;
  std::size_t depth = 0;
  std::vector<std::string> names;
  while (!rest.empty()) {
    if (++depth > kMaxSegments) throw bad_route(pattern, "has too many segments");
    rest.remove_prefix(1);
    const auto end = std::min(rest.find('/'), rest.size());
    const auto segment = rest.substr(0, end);
    Node& parent = *node;
    node = &parent.child(pattern, segment);
    if (node == parent.parameter_child.get()) {
      const auto& [name, type] = *parent.parameter;
      if (type == Type::kRest && end != rest.size()) throw bad_route(pattern, "a parameter of type rest must be last");
      if (std::ranges::find(names, name) != names.end())
        throw bad_route(pattern, "has two parameters of the same name");
      names.push_back(name);
    }
    rest.remove_prefix(end);
  }
  auto& slot = node->routes[static_cast<std::size_t>(route.verb)];
  if (slot != kNoRoute) throw bad_route(pattern, fmt::format("{} is already registered", to_string(route.verb)));
  slot = routes_.size();
  routes_.push_back(std::make_unique<Route>(std::move(route)));
}

std::vector<Router::Entry> Router::routes() const {
  std::vector<Entry> entries;
  entries.reserve(routes_.size());
  for (const auto& route : routes_) entries.push_back({route->verb, route->pattern, route->access.to_string()});
  return entries;
}

Router::Match Router::match(Request& request) const {
  const auto path = request.path();
  Walk<Node> walk;
  const Node* node = walk.find(*root_, path == "/" ? std::string_view() : path);
  if (node == nullptr) {
    if (walk.bad) return std::move(*walk.bad);
    return NoPath{};
  }
  auto verb = request.verb();
  if (verb == Verb::kOther) return NoVerb{allow_list(node->routes)};
  if (verb == Verb::kHead && node->routes[static_cast<std::size_t>(verb)] == kNoRoute) verb = Verb::kGet;
  const auto index = node->routes[static_cast<std::size_t>(verb)];
  if (index == kNoRoute) return NoVerb{allow_list(node->routes)};
  for (auto value = walk.values.rbegin(); value != walk.values.rend(); ++value) {
    request.set_param(value->first, std::move(value->second));
  }
  if (walk.secret) request.set_path_secret(std::move(*walk.secret));
  return Found{index};
}

}  // namespace fencepost::http
