#include "evm/reply/rpc_reply.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <simdjson.h>

#include <boost/json/parse.hpp>

#include "base/text.hpp"
#include "evm/logs/log_refusal.hpp"

namespace fencepost::evm {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr std::size_t kMaxErrorText = 1024;

Error bad_reply(std::string message) {
  return unavailable("bad_reply", std::move(message));
}

Error bad_result(std::string_view expected, std::string_view text) {
  return unavailable("bad_rpc_result", fmt::format("expected {}, got {}", expected, quote(text)));
}

// Thrown inside this file only: code that reads simdjson values is simpler with exceptions. One place turns these and
// simdjson's own into a Result.
struct BadReply {
  std::string message;
};

// The members of one answer object, not yet checked.
struct Answer {
  bool version_2 = false;
  bool has_id = false;
  std::optional<std::uint64_t> id;         // none: null
  std::optional<std::string_view> result;  // JSON text in the body
  std::optional<std::string_view> error;   // likewise; not null
};

std::string_view trimmed(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

// The text of a value, without parsing it.
std::string_view raw(ondemand::value value) {
  switch (value.type().value()) {
    case ondemand::json_type::object:
      return trimmed(value.get_object().value().raw_json().value());
    case ondemand::json_type::array:
      return trimmed(value.get_array().value().raw_json().value());
    default:
      return trimmed(value.raw_json_token());
  }
}

void read_id(ondemand::value value, Answer& answer) {
  answer.has_id = true;
  if (value.is_null()) return;
  std::uint64_t id = 0;
  if (value.get_uint64().get(id) != simdjson::SUCCESS) throw BadReply{"an answer's id is not an unsigned integer"};
  answer.id = id;
}

void once(bool& seen, std::string_view member) {
  if (std::exchange(seen, true)) throw BadReply{fmt::format("an answer has '{}' twice", member)};
}

Answer read_answer(ondemand::object object) {
  Answer answer;
  bool seen_id = false;
  bool seen_result = false;
  bool seen_error = false;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key().value();
    if (key == "jsonrpc") {
      answer.version_2 = std::string_view(field.value().get_string().value()) == "2.0";
    } else if (key == "id") {
      once(seen_id, key);
      read_id(field.value(), answer);
    } else if (key == "result") {
      once(seen_result, key);
      answer.result = raw(field.value());
    } else if (key == "error") {
      once(seen_error, key);
      const auto text = raw(field.value());
      if (text != "null") answer.error = text;
    }
  }
  if (!answer.version_2) throw BadReply{"an answer is not JSON-RPC 2.0"};
  return answer;
}

RpcError read_error(std::string_view text) {
  if (text.size() > kMaxErrorBytes) throw BadReply{"an error object is over the size limit"};
  boost::json::error_code ec;
  const auto value = boost::json::parse(text, ec);
  if (ec || !value.is_object()) throw BadReply{"an error is not an object"};
  const auto& object = value.get_object();
  const auto* code = object.if_contains("code");
  const auto* message = object.if_contains("message");
  const auto* data = object.if_contains("data");
  if (code == nullptr || !code->is_int64()) throw BadReply{"an error has no integer code"};
  RpcError error;
  error.code = code->get_int64();
  if (message != nullptr && message->is_string()) error.message = plain_text(message->get_string(), kMaxErrorText);
  if (data != nullptr) error.data = boost::json::serialize(*data);
  error.text = text;
  return error;
}

RpcOutcome judge(const Answer& answer) {
  if (answer.error && answer.result && *answer.result != "null") throw BadReply{"an answer has result and error"};
  if (answer.error) return std::unexpected(read_error(*answer.error));
  if (!answer.result) throw BadReply{"an answer has neither result nor error"};
  return RpcValue(std::string(*answer.result));
}

// Runs `read` on the parsed body; every exception becomes `bad_reply`.
template <class Read>
auto with_document(std::string& body, Read read) -> decltype(read(std::declval<ondemand::document&>())) {
  const auto start = body.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) return fail(bad_reply("the reply is empty"));
  if (body[start] != '{' && body[start] != '[') {
    return fail(bad_reply(fmt::format("the reply is not JSON-RPC: {}", quote(std::string_view(body).substr(start)))));
  }
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  try {
    ondemand::parser parser;
    auto document = parser.iterate(body.data(), body.size(), body.capacity()).value();
    auto outcome = read(document);
    if (outcome && document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      return fail(bad_reply("the reply has more text after its end"));
    return outcome;
  } catch (const simdjson::simdjson_error& broken) {
    return fail(bad_reply(fmt::format("the reply is not JSON: {}", broken.what())));
  } catch (const BadReply& shape) {
    return fail(bad_reply(shape.message));
  }
}

}  // namespace

Result<RpcOutcome> parse_single_reply(std::string& body, std::uint64_t id) {
  return with_document(body, [id](ondemand::document& document) -> Result<RpcOutcome> {
    const auto answer = read_answer(document.get_object().value());
    if (!answer.has_id && !answer.error) throw BadReply{"the answer has no id"};
    if (answer.id ? *answer.id != id : !answer.error) throw BadReply{"the answer has the id of another call"};
    return judge(answer);
  });
}

Result<std::vector<RpcOutcome>> parse_batch_reply(std::string& body, std::uint64_t first_id, std::size_t count) {
  const auto read = [&](ondemand::document& document) -> Result<std::vector<RpcOutcome>> {
    if (document.type().value() == ondemand::json_type::object) {
      const auto answer = read_answer(document.get_object().value());
      if (!answer.error) throw BadReply{"expected an array of answers to a batch, got one answer"};
      const auto error = read_error(*answer.error);
      const auto words = fmt::format("the server refused the batch: {} ({})", quote(error.message, 200), error.code);
      // A server that takes no batches at all calls them an invalid request.
      if (refuses_batch(error.message) || lowercase(error.message).contains("invalid request")) {
        return fail(unavailable("batch_too_large", words));
      }
      return fail(unavailable("batch_refused", words));
    }
    std::vector<std::optional<RpcOutcome>> slots(count);
    auto elements = document.get_array().value();
    for (auto element : elements) {
      const auto answer = read_answer(element.get_object().value());
      if (!answer.id || *answer.id < first_id || *answer.id - first_id >= count) {
        throw BadReply{"an answer has the id of no call of the batch"};
      }
      auto& slot = slots[*answer.id - first_id];
      if (slot) throw BadReply{"a call is answered twice"};
      slot = judge(answer);
    }
    std::vector<RpcOutcome> outcomes;
    outcomes.reserve(count);
    for (auto& slot : slots) {
      if (!slot) return fail(unavailable("batch_truncated", "a call of the batch is not answered"));
      outcomes.push_back(std::move(*slot));
    }
    return outcomes;
  };
  return with_document(body, read);
}

Result<std::string> RpcValue::as_string() const {
  auto value = as_json();
  if (!value || !value->is_string()) return fail(bad_result("a string", text_));
  return std::string(value->get_string());
}

Result<std::uint64_t> RpcValue::as_quantity() const {
  const auto text = as_string();
  if (!text) return fail(text.error());
  std::uint64_t number = 0;
  const std::string_view digits = text->starts_with("0x") ? std::string_view(*text).substr(2) : std::string_view();
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
    return fail(bad_result("a quantity like \"0x1a\"", text_));
  }
  return number;
}

Result<boost::json::value> RpcValue::as_json() const {
  boost::json::parse_options options;
  options.max_depth = 64;  // call traces nest deeply
  boost::json::error_code ec;
  auto value = boost::json::parse(text_, ec, {}, options);
  if (ec) return fail(bad_result("JSON", text_));
  return value;
}

bool means_sick_endpoint(const RpcError& error) {
  constexpr std::array<std::string_view, 16> kSick{"rate limit",
                                                   "ratelimit",
                                                   "too many requests",
                                                   "request limit",
                                                   "requests limit",
                                                   "daily limit",
                                                   "monthly",
                                                   "quota",
                                                   "compute units",
                                                   "over capacity",
                                                   "overloaded",
                                                   "service unavailable",
                                                   "temporarily unavailable",
                                                   "try again later",
                                                   "api key",
                                                   "project id"};
  // About the call, not about the server: another server would refuse it too.
  if (refuses_range(error.message, error.data)) return false;
  constexpr std::array<std::string_view, 2> kAboutTheCall{"gas", "revert"};
  const auto message = lowercase(error.message);
  const auto says = [&](std::string_view phrase) { return message.find(phrase) != std::string::npos; };
  if (std::ranges::any_of(kAboutTheCall, says)) return false;
  constexpr std::int64_t kLimitExceeded = -32005;
  constexpr std::int64_t kResourceUnavailable = -32002;
  return error.code == kLimitExceeded || error.code == kResourceUnavailable || error.code == 429 ||
         std::ranges::any_of(kSick, says);
}

bool refuses_batch(std::string_view message) {
  constexpr std::array<std::string_view, 5> kTooLarge{"response too large", "response size", "request entity too large",
                                                      "payload too large", "too many calls"};
  const auto text = lowercase(message);
  if (text.contains("revert")) return false;  // a contract's own words may follow
  return text.contains("batch") || std::ranges::any_of(kTooLarge, [&](auto phrase) { return text.contains(phrase); });
}

}  // namespace fencepost::evm
