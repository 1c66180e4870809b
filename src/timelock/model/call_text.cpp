#include "timelock/model/call_text.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <boost/json/array.hpp>

#include "base/hex.hpp"
#include "evm/abi/abi_decoder.hpp"

namespace fencepost::timelock {
namespace {

using evm::AbiFunction;
using Data = std::span<const std::uint8_t>;

// nullopt when the data is not exactly the function's arguments.
std::optional<ExplainedCall> read_as(const AbiFunction& function, Data arguments, CallSource source) {
  auto values = evm::decode_abi(evm::input_types(function), arguments);
  if (!values) return std::nullopt;
  ExplainedCall out{.function = function.name, .signature = function.signature(), .source = source};
  out.arguments.reserve(values->size());
  for (std::size_t i = 0; i < values->size(); ++i) {
    const auto& [name, type] = function.inputs[i];
    out.arguments.push_back({name, type.text(), std::move((*values)[i])});
  }
  return out;
}

// The same function with names of parameters, where a table has it.
AbiFunction with_names(AbiFunction function, std::span<const FunctionTable* const> tables) {
  const auto signature = function.signature();
  const auto selector = evm::selector(signature);
  for (const auto* table : tables) {
    const auto known = table->find(selector);
    const auto same = std::ranges::find(known, signature, &AbiFunction::signature);
    if (same != known.end()) return *same;
  }
  return function;
}

// Collects readings of one call, until two signatures fit.
class Readings {
 public:
  explicit Readings(Data arguments) : arguments_(arguments) {}

  void add(std::span<const AbiFunction> functions, CallSource source) {
    for (const auto& function : functions) {
      auto reading = read_as(function, arguments_, source);
      if (!reading) continue;
      if (!first_) {
        first_ = std::move(reading);
      } else if (first_->signature != reading->signature) {
        several_ = true;
      }
    }
  }
  std::optional<ExplainedCall> only() && { return several_ ? std::nullopt : std::move(first_); }

 private:
  Data arguments_;
  std::optional<ExplainedCall> first_;
  bool several_ = false;
};

}  // namespace

std::optional<ExplainedCall> explain_call(const Call& call, const FunctionTable& of_target,
                                          const FunctionTable& of_any) {
  const auto data = from_hex0x(call.data);
  // A signature that is not text is not a function's.
  if (!data || !call.signature_bytes.empty()) return std::nullopt;
  if (!call.signature.empty()) {
    auto function = evm::parse_signature(call.signature);
    if (!function) return std::nullopt;
    const FunctionTable* const tables[] = {&of_target, &of_any, &builtin_functions()};
    return read_as(with_names(std::move(*function), tables), *data, CallSource::kSignature);
  }
  evm::Selector selector;
  if (data->size() < selector.size()) return std::nullopt;
  std::ranges::copy(std::span(*data).first(selector.size()), selector.begin());
  Readings readings(std::span(*data).subspan(selector.size()));
  if (const auto own = of_target.find(selector); !own.empty()) {
    // The target's own ABI decides: another function with the same selector would be a guess.
    readings.add(own, CallSource::kUploaded);
  } else {
    readings.add(of_any.find(selector), CallSource::kUploaded);
    readings.add(builtin_functions().find(selector), CallSource::kBuiltin);
  }
  return std::move(readings).only();
}

boost::json::object to_json(const ExplainedCall& call) {
  boost::json::array arguments;
  arguments.reserve(call.arguments.size());
  for (const auto& argument : call.arguments) {
    boost::json::object one;
    if (!argument.name.empty()) one["name"] = argument.name;
    one["type"] = argument.type;
    one["value"] = argument.value;
    arguments.push_back(std::move(one));
  }
  return {{"function", call.function},
          {"signature", call.signature},
          {"arguments", std::move(arguments)},
          {"source", kCallSources.name(call.source)}};
}

}  // namespace fencepost::timelock
