#include "evm/call_error.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "evm/json_rpc.hpp"
#include "evm/revert_reason.hpp"
#include "evm/submit_class.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kMaxDataBytes = 128 * 1024;
constexpr std::size_t kMaxShownBytes = 4096;

std::optional<Bytes> from_text(std::string_view text) {
  constexpr std::string_view kPrefix = "Reverted ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  auto bytes = from_hex0x(text);
  if (!bytes) return std::nullopt;
  return std::move(*bytes);
}

// The parser bounds the depth. Members with the names that nodes use come first: other members may hold hashes or
// addresses.
std::optional<Bytes> search(const boost::json::value& value) {
  if (value.is_string()) return from_text(value.get_string());
  const auto* object = value.if_object();
  if (object == nullptr) return std::nullopt;
  for (const std::string_view name : {"data", "return", "output", "result"}) {
    const auto* member = object->if_contains(name);
    if (member == nullptr) continue;
    if (auto found = search(*member)) return found;
  }
  for (const auto& [name, member] : *object) {
    if (!member.is_object()) continue;
    if (auto found = search(member)) return found;
  }
  return std::nullopt;
}

std::string_view context_text(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return {};
}

// The contract's reason; the endpoint's message when there is nothing to decode.
std::string reason_of(const Error& cause, const std::optional<Bytes>& data) {
  if (data && !data->empty()) return revert_reason(*data);
  std::string_view words = cause.message;
  for (const std::string_view prefix : {"execution reverted", "Execution reverted", ": "}) {
    if (words.starts_with(prefix)) words.remove_prefix(prefix.size());
  }
  return words.empty() ? revert_reason({}) : std::string(words.substr(0, kMaxRevertReason));
}

Error would_revert(const Error& cause) {
  const auto data = revert_data(context_text(cause, "data"));
  const auto reason = reason_of(cause, data);
  Error error{ErrorKind::kUnprocessable, "would_revert", "the transaction would fail: " + reason, {}, {}};
  error.with("revertReason", reason);
  if (data && data->size() <= kMaxShownBytes) error.with("revertData", to_hex0x(*data));
  return error;
}

}  // namespace

std::optional<Bytes> revert_data(std::string_view data) {
  if (data.empty()) return std::nullopt;
  const auto value = parse_json(data, kMaxDataBytes);
  if (!value) return std::nullopt;
  return search(*value);
}

Error call_error(Error error) {
  const auto code = rpc_code(error);
  if (error.code != "rpc_error" || !code) return error;
  switch (classify_submit_error(*code, error.message)) {
    case SubmitClass::kReverted:
      return would_revert(error);
    case SubmitClass::kInsufficientFunds:
      return {ErrorKind::kUnprocessable,
              "insufficient_funds",
              fmt::format("the sender cannot pay for the transaction: {}", error.message),
              {},
              {}};
    default:
      return error;
  }
}

}  // namespace fencepost::evm
