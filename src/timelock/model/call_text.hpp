// Explains a call in words: which function, with which arguments. A call is explained only when there is exactly one
// way to read it; otherwise it stays hex. People approve transactions by what they read here, so nothing is guessed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "base/name_table.hpp"
#include "timelock/model/function_table.hpp"
#include "timelock/model/raw_event.hpp"

namespace fencepost::timelock {

enum class CallSource { kSignature, kUploaded, kBuiltin };

inline constexpr auto kCallSources = name_table<CallSource>({
    {CallSource::kSignature, "signature", "The event itself has the function's signature (Compound)."},
    {CallSource::kUploaded, "uploaded", "An ABI that a user uploaded has the function."},
    {CallSource::kBuiltin, "builtin", "The built-in table of common functions has it."},
});

struct CallArgument {
  std::string name;  // empty: unknown
  std::string type;
  boost::json::value value;  // as evm/abi/abi_decoder.hpp describes
  friend bool operator==(const CallArgument&, const CallArgument&) = default;
};

struct ExplainedCall {
  std::string function;
  std::string signature;
  std::vector<CallArgument> arguments;
  CallSource source = CallSource::kBuiltin;
  friend bool operator==(const ExplainedCall&, const ExplainedCall&) = default;
};

// `of_target`: functions that users uploaded for the call's target; `of_any`: for any address.
//   - A call with a signature is read by it; the tables only add names of parameters.
//   - Otherwise functions of the target with the call's selector count. If there are none, those of `of_any` and of the
//     built-in table count.
// A function fits when the data decodes by its types without a byte left over and with zero padding. nullopt: no
// function fits, or functions with different signatures do.
std::optional<ExplainedCall> explain_call(const Call& call, const FunctionTable& of_target,
                                          const FunctionTable& of_any);

// {"function", "signature", "arguments": [{"name", "type", "value"}], "source"}; an unknown name is left out.
boost::json::object to_json(const ExplainedCall& call);

}  // namespace fencepost::timelock
