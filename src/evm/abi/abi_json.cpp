#include "evm/abi/abi_json.hpp"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json.hpp"

namespace fencepost::evm {
namespace {

constexpr std::string_view kTuple = "tuple";

AbiType accept(const JsonReader& in, Result<AbiType> type) {
  if (!type) in.reject("bad_request", type.error().message);
  return std::move(*type);
}

AbiType read_type(const JsonReader& in, std::size_t& budget, std::size_t depth);

AbiType read_tuple(const JsonReader& in, std::size_t& budget, std::size_t depth) {
  std::vector<AbiType> components;
  for (const auto& one : in.field("components").array(kAbiMaxTypes)) {
    components.push_back(read_type(one, budget, depth + 1));
  }
  return accept(in.field("components"), make_tuple(std::move(components)));
}

// A parameter's `type`; that of a tuple is "tuple", "tuple[]", "tuple[2][]", and its `components` say the rest.
AbiType read_type(const JsonReader& in, std::size_t& budget, std::size_t depth) {
  const auto at = in.field("type");
  const auto text = at.string(kAbiMaxText);
  if (budget == 0) at.reject("bad_request", fmt::format("a function has more than {} types", kAbiMaxTypes));
  --budget;
  if (depth > kAbiMaxDepth) {
    at.reject("bad_request", fmt::format("arrays and tuples are nested over {} deep", kAbiMaxDepth));
  }
  const bool is_tuple = text.starts_with(kTuple);
  // The brackets of a tuple's type are read as those of an array of numbers.
  const auto parsed = parse_abi_types(is_tuple ? "uint8" + text.substr(kTuple.size()) : text);
  if (!parsed) at.reject("bad_request", parsed.error().message);
  if (parsed->size() != 1 || (!is_tuple && text.starts_with('('))) at.reject("bad_request", "expected one type");
  if (!is_tuple) return parsed->front();

  std::vector<std::optional<std::size_t>> lengths;  // of the arrays, the outermost first
  const auto* inner = &parsed->front();
  for (; inner->kind == AbiKind::kArray; inner = &inner->parts[0]) {
    lengths.push_back(inner->any_length ? std::nullopt : std::optional(inner->size));
  }
  if (inner->size != 8) at.reject("bad_request", "expected `tuple` and brackets");
  auto type = read_tuple(in, budget, depth);
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    type = accept(at, make_array(std::move(type), *length));
  }
  return type;
}

std::string read_name(const JsonReader& in) {
  auto name = in.optional_string(kAbiMaxName).value_or("");
  if (!name.empty() && !is_identifier(name)) in.reject("bad_request", "expected a name of letters and digits");
  return name;
}

AbiFunction read_function_entry(const JsonReader& in) {
  AbiFunction function{.name = read_name(in.field("name")), .inputs = {}};
  if (function.name.empty()) in.field("name").reject("bad_request", "is required");
  auto budget = kAbiMaxTypes;
  if (in.field("inputs").present()) {
    for (const auto& input : in.field("inputs").array(kAbiMaxTypes)) {
      auto name = read_name(input.field("name"));
      function.inputs.push_back({std::move(name), read_type(input, budget, 0)});
    }
  }
  // The declaration is what is stored, so it must be readable again.
  if (const auto again = parse_function(function.declaration()); !again)
    in.reject("bad_request", again.error().message);
  return function;
}

}  // namespace

std::vector<AbiFunction> read_abi(const JsonReader& in) {
  const auto list = in.value().is_object() ? in.field("abi") : in;
  std::vector<AbiFunction> functions;
  std::set<std::string> signatures;
  for (const auto& entry : list.array(kAbiJsonMaxEntries)) {
    const auto type = entry.field("type").optional_string().value_or("function");
    if (type != "function") continue;
    auto function = read_function_entry(entry);
    if (!signatures.insert(function.signature()).second) continue;
    if (functions.size() == kAbiJsonMaxFunctions) {
      entry.reject("bad_request", fmt::format("more than {} functions", kAbiJsonMaxFunctions));
    }
    functions.push_back(std::move(function));
  }
  return functions;
}

Result<std::vector<AbiFunction>> parse_abi_json(std::string_view text) {
  const auto document = parse_json(text, kAbiJsonMaxBytes);
  if (!document) return fail(document.error());
  try {
    return read_abi(JsonReader(*document, "abi"));
  } catch (const Exception& e) {
    return fail(e.error());
  }
}

}  // namespace fencepost::evm
