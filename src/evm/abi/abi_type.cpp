#include "evm/abi/abi_type.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kAbiWord = 32;
constexpr std::size_t kMaxArrayLength = kAbiMaxHead / kAbiWord;

Error bad_type(std::string reason) {
  return invalid("bad_abi", std::move(reason));
}

Error too_deep() {
  return bad_type(fmt::format("arrays and tuples are nested over {} deep", kAbiMaxDepth));
}

bool is_type_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

// Digits without a leading zero; nullopt for anything else.
std::optional<std::size_t> small_number(std::string_view digits) {
  if (digits.empty() || digits.front() == '0' || !std::ranges::all_of(digits, is_type_digit)) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<AbiType> integer_type(AbiKind kind, std::string_view bits) {
  const auto size = small_number(bits);
  if (!size || *size > 256 || *size % 8 != 0) return std::nullopt;
  return AbiType{.kind = kind, .size = *size};
}

// A type without brackets; nullopt when there is no canonical type of that name.
std::optional<AbiType> elementary_type(std::string_view word) {
  if (word == "address") return AbiType{.kind = AbiKind::kAddress};
  if (word == "bool") return AbiType{.kind = AbiKind::kBool};
  if (word == "function") return AbiType{.kind = AbiKind::kFunction, .size = 24};
  if (word == "bytes") return AbiType{.kind = AbiKind::kBytes, .dynamic = true};
  if (word == "string") return AbiType{.kind = AbiKind::kString, .dynamic = true};
  if (word.starts_with("uint")) return integer_type(AbiKind::kUint, word.substr(4));
  if (word.starts_with("int")) return integer_type(AbiKind::kInt, word.substr(3));
  if (!word.starts_with("bytes")) return std::nullopt;
  const auto size = small_number(word.substr(5));
  if (!size || *size > kAbiWord) return std::nullopt;
  return AbiType{.kind = AbiKind::kFixedBytes, .size = *size};
}

// Reads from left to right; each function consumes what it returns.
class TypeParser {
 public:
  explicit TypeParser(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  template <class Predicate>
  std::string_view take_while(Predicate wanted) {
    const auto begin = at_;
    while (!done() && wanted(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Error refuse(std::string_view expected) const {
    return bad_type(fmt::format("expected {} at position {} of {}", expected, at_, quote(text_)));
  }

  Result<AbiType> type(std::size_t depth = 0) {
    if (++types_ > kAbiMaxTypes) return fail(bad_type(fmt::format("more than {} types", kAbiMaxTypes)));
    if (depth > kAbiMaxDepth) return fail(too_deep());
    auto base = take('(') ? tuple(depth) : elementary();
    while (base && take('[')) base = array_of(std::move(*base));
    return base;
  }

 private:
  Result<AbiType> elementary() {
    const auto begin = at_;
    const auto word = take_while([](char c) { return is_letter(c) || is_type_digit(c); });
    auto type = elementary_type(word);
    if (type) return std::move(*type);
    at_ = begin;
    return fail(refuse("a canonical type (uint256, not uint)"));
  }
  Result<AbiType> tuple(std::size_t depth) {
    std::vector<AbiType> components;
    do {
      auto component = type(depth + 1);
      if (!component) return component;
      components.push_back(std::move(*component));
    } while (take(','));
    if (!take(')')) return fail(refuse("`,` or `)`"));
    return make_tuple(std::move(components));
  }
  Result<AbiType> array_of(AbiType element) {
    if (take(']')) return make_array(std::move(element), std::nullopt);
    const auto length = small_number(take_while(is_type_digit));
    if (!length || !take(']')) return fail(refuse("`]`, or a length of at least 1 and `]`"));
    return make_array(std::move(element), length);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t types_ = 0;
};

Result<void> check_length(std::string_view text) {
  if (text.size() <= kAbiMaxText) return {};
  return fail(bad_type(fmt::format("{} bytes are more than {}", text.size(), kAbiMaxText)));
}

Result<AbiFunction> read_function(std::string_view text, bool names) {
  if (auto fits = check_length(text); !fits) return fail(std::move(fits).error());
  TypeParser in(text);
  AbiFunction function;
  function.name = in.take_while([](char c) { return is_letter(c) || is_type_digit(c); });
  if (!is_identifier(function.name)) return fail(bad_type(fmt::format("{} does not begin with a name", quote(text))));
  if (!in.take('(')) return fail(in.refuse("`(`"));
  if (!in.take(')')) {
    do {
      auto type = in.type();
      if (!type) return fail(std::move(type).error());
      std::string name;
      if (names && in.take(' ')) {
        name = in.take_while([](char c) { return is_letter(c) || is_type_digit(c); });
        if (!is_identifier(name)) return fail(in.refuse("a name"));
      }
      function.inputs.push_back({std::move(name), std::move(*type)});
    } while (in.take(','));
    if (!in.take(')')) return fail(in.refuse("`,` or `)`"));
  }
  if (!in.done()) return fail(in.refuse("the end"));
  return function;
}

std::string joined(const AbiFunction& function, bool names) {
  auto out = function.name + "(";
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const auto& [name, type] = function.inputs[i];
    if (i > 0) out += ',';
    out += type.text();
    if (names && !name.empty()) out.append(" ").append(name);
  }
  return out += ')';
}

}  // namespace

std::string AbiType::text() const {
  switch (kind) {
    case AbiKind::kUint:
      return fmt::format("uint{}", size);
    case AbiKind::kInt:
      return fmt::format("int{}", size);
    case AbiKind::kAddress:
      return "address";
    case AbiKind::kBool:
      return "bool";
    case AbiKind::kFixedBytes:
      return fmt::format("bytes{}", size);
    case AbiKind::kFunction:
      return "function";
    case AbiKind::kBytes:
      return "bytes";
    case AbiKind::kString:
      return "string";
    case AbiKind::kArray:
      return parts[0].text() + (any_length ? std::string("[]") : fmt::format("[{}]", size));
    case AbiKind::kTuple:
      break;
  }
  std::string out = "(";
  for (const auto& part : parts) out += (out.size() > 1 ? "," : "") + part.text();
  return out += ')';
}

std::string AbiFunction::signature() const {
  return joined(*this, false);
}

std::string AbiFunction::declaration() const {
  return joined(*this, true);
}

Result<std::vector<AbiType>> parse_abi_types(std::string_view text) {
  if (auto fits = check_length(text); !fits) return fail(std::move(fits).error());
  std::vector<AbiType> types;
  if (text.empty()) return types;
  TypeParser in(text);
  do {
    auto type = in.type();
    if (!type) return fail(std::move(type).error());
    types.push_back(std::move(*type));
  } while (in.take(','));
  if (!in.done()) return fail(in.refuse("`,` or the end"));
  return types;
}

Result<AbiFunction> parse_signature(std::string_view text) {
  return read_function(text, false);
}

Result<AbiFunction> parse_function(std::string_view text) {
  return read_function(text, true);
}

Result<AbiType> make_tuple(std::vector<AbiType> components) {
  AbiType out{.kind = AbiKind::kTuple, .parts = std::move(components)};
  if (out.parts.empty()) return fail(bad_type("a tuple has no components"));
  std::size_t head = 0;
  for (const auto& part : out.parts) {
    out.dynamic = out.dynamic || part.dynamic;
    out.depth = std::max(out.depth, part.depth + 1);
    head += part.head;
    if (head > kAbiMaxHead) return fail(bad_type(fmt::format("a tuple is larger than {} bytes", kAbiMaxHead)));
  }
  if (out.depth > kAbiMaxDepth) return fail(too_deep());
  out.head = out.dynamic ? kAbiWord : head;
  return out;
}

Result<AbiType> make_array(AbiType element, std::optional<std::size_t> length) {
  if (length && (*length == 0 || *length > kMaxArrayLength || *length > kAbiMaxHead / element.head)) {
    return fail(
        bad_type(fmt::format("an array of {} elements is empty or larger than {} bytes", *length, kAbiMaxHead)));
  }
  if (element.depth >= kAbiMaxDepth) return fail(too_deep());
  AbiType out{.kind = AbiKind::kArray, .size = length.value_or(0), .any_length = !length};
  out.dynamic = out.any_length || element.dynamic;
  out.head = out.dynamic ? kAbiWord : *length * element.head;
  out.depth = element.depth + 1;
  out.parts.push_back(std::move(element));
  return out;
}

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= kAbiMaxName && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_type_digit(c); });
}

}  // namespace fencepost::evm
