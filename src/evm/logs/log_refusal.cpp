#include "evm/logs/log_refusal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "base/text.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kMaxDataText = 4096;

// All in lowercase. What these say is not about the range, whatever else they say.
constexpr std::array<std::string_view, 18> kAboutSomethingElse{
    "rate limit", "ratelimit",     "too many requests",   "requests per", "request limit", "request count",
    "quota",      "compute units", "per second",          "per day",      "daily",         "monthly",
    "credits",    "over capacity", "invalid block range", "out of range", "out of bounds", "current head"};

// In a "limit exceeded" without words about a range, these mean the quota.
constexpr std::array<std::string_view, 12> kAboutTheAccount{"rate",    "second", "minute", "hour",  "day", "month",
                                                            "account", "plan",   "tier",   "usage", "api", "project"};
constexpr std::int64_t kLimitExceededCode = -32005;

// Both parts must be in the text, in any order.
struct Phrase {
  std::string_view part;
  std::string_view other = {};
};
constexpr std::array kTooLarge{
    // too many blocks
    Phrase{"block range", "too"},     // Ankr, Base, Moonbeam, anvil: "block range is too wide (maximum 1024)"
    Phrase{"block range", "exceed"},  // BSC, reth, erigon: "exceed maximum block range: 5000"
    Phrase{"block range", "than"},    // Scroll, Ink: "block range greater than 10000 max"
    Phrase{"block range", "limit"},   // Chainstack: "Block range limit exceeded."
    Phrase{"block range", "up to"},   // Alchemy: "requests with up to a 500 block range"
    Phrase{"block range", "narrow"},  // "narrow the block range"
    Phrase{"range", "too large"},     // Cloudflare: "'fromBlock'-'toBlock' range too large. Max range: 800"
    Phrase{"range", "exceeds"},       // Besu, Infura: "range 1000000 exceeds limit of 10000"
    Phrase{"range", "limited to"},    // QuickNode: "eth_getLogs is limited to a 10,000 range"
    Phrase{"range", "range limit"},   // Tenderly: "range 9009594 is bigger than range limit 2000"
    Phrase{"ranges over", "blocks"},  // dRPC: "ranges over 10000 blocks are not supported on free plan"
    Phrase{"too many blocks"},        // Avalanche: "requested too many blocks from 1 to 3000, maximum is set to 2048"
    Phrase{"number of requested blocks"},       // thirdweb: "Maximum allowed number of requested blocks is 1000"
    Phrase{"at most", "blocks"},                // Coinbase: "please limit the query to at most 1000 blocks"
    Phrase{"blocks distance"},                  // TAC: "maximum [from, to] blocks distance: 10000"
    Phrase{"query must be smaller than size"},  // Harmony
    // too many logs
    Phrase{"more than", "results"},  // geth and Infura: "query returned more than 10000 results"
    Phrase{"max results"},           // reth: "query exceeds max results 20000, retry with the range 1-2"
    Phrase{"too many results"},
    Phrase{"too many logs"},          // Nethermind: "Too many logs requested. Max logs per response is 20000."
    Phrase{"logs matched", "limit"},  // Arbitrum: "logs matched by query exceeds limit of 10000"
    Phrase{"response size"},          // Alchemy: "Log response size exceeded."
    Phrase{"response too large"},     // Optimism: "backend response too large"
    Phrase{"response is too big"},    // Substrate and reth: "Response is too big"
    Phrase{"result set too large"},
    // too long a search
    Phrase{"query timeout"},  // Infura, Alchemy, Moonbeam: "query timeout of 10 seconds exceeded"
    Phrase{"query timed out"},
};

// The words right before the largest accepted number of blocks. The first that fits counts.
constexpr std::array<std::string_view, 27> kBeforeSpan{"max block range = ",
                                                       "max block range: ",
                                                       "max block range ",
                                                       "maximum block range: ",
                                                       "maximum block range ",
                                                       "max range: ",
                                                       "max range is ",
                                                       "range limit ",
                                                       "limited to a ",
                                                       "limited to 0 - ",
                                                       "limited to ",
                                                       "at most ",
                                                       "maximum allowed is ",
                                                       "requested blocks is ",
                                                       "maximum is set to ",
                                                       "too wide (maximum ",
                                                       "block range greater than ",
                                                       "block range exceeds ",
                                                       "block range exceeds server limit, narrow your filter: ",
                                                       "but only ",
                                                       "exceeds limit of ",
                                                       "ranges over ",
                                                       "up to a ",
                                                       "blocks distance: ",
                                                       "max is ",
                                                       "smaller than size ",
                                                       "max: "};

bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Digits, with commas before groups of three; "k" means thousands. Removes what it read from the text.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::string digits;
  while (!text.empty() && ((text.front() >= '0' && text.front() <= '9') || (text.front() == ',' && !digits.empty()))) {
    if (text.front() == ',' &&
        (text.size() < 4 || !std::ranges::all_of(text.substr(1, 3), [](char c) { return c >= '0' && c <= '9'; }))) {
      break;
    }
    if (text.front() != ',') digits += text.front();
    text.remove_prefix(1);
  }
  std::int64_t number = 0;
  const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), number).ec;
  if (error != std::errc{} || number < 0) return std::nullopt;
  if (text.starts_with('k')) {
    if (number > std::numeric_limits<std::int64_t>::max() / 1000) return std::nullopt;
    number *= 1000;
  }
  return number;
}

std::optional<std::int64_t> take_hex(std::string_view& text) {
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::int64_t> span_of(std::optional<std::int64_t> first, std::optional<std::int64_t> last) {
  if (!first || !last || *last < *first || *last - *first == std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return *last - *first + 1;
}

// Alchemy, Infura, zkSync: "this block range should work: [0xc5dc00, 0xc614a7]"
std::optional<std::int64_t> bracketed_span(std::string_view text) {
  const auto start = text.find("[0x");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start + 1);
  const auto first = take_hex(text);
  const auto next = text.find_first_not_of(", ");
  if (!first || next == std::string_view::npos) return std::nullopt;
  text.remove_prefix(next);
  return span_of(first, take_hex(text));
}

// reth: "query exceeds max results 20000, retry with the range 24383075-24383096"
std::optional<std::int64_t> retry_span(std::string_view text) {
  constexpr std::string_view kBefore = "retry with the range ";
  const auto start = text.find(kBefore);
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start + kBefore.size());
  const auto first = take_number(text);
  if (!text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  return span_of(first, take_number(text));
}

std::optional<std::int64_t> named_span(std::string_view text) {
  if (says(text, "logs matched")) return std::nullopt;  // Arbitrum's number counts logs
  for (const auto words : kBeforeSpan) {
    const auto start = text.find(words);
    if (start == std::string_view::npos) continue;
    auto rest = text.substr(start + words.size());
    if (const auto number = take_number(rest); number && *number > 0) return number;
  }
  return std::nullopt;
}

std::string refusal_text(std::string_view message, std::string_view data) {
  auto text = lowercase(message);
  if (!data.empty()) text += ' ' + lowercase(data.substr(0, kMaxDataText));
  return text;
}

bool text_refuses_range(std::string_view text) {
  if (std::ranges::any_of(kAboutSomethingElse, [&](std::string_view part) { return says(text, part); })) return false;
  return std::ranges::any_of(kTooLarge,
                             [&](const Phrase& phrase) { return says(text, phrase.part) && says(text, phrase.other); });
}

std::string_view refusal_context(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace

bool refuses_range(std::string_view message, std::string_view data) {
  return text_refuses_range(refusal_text(message, data));
}

bool is_bare_limit(std::int64_t code, std::string_view message) {
  if (code != kLimitExceededCode) return false;
  const auto text = lowercase(message);
  if (!text.empty() && !says(text, "limit")) return false;
  const auto in_text = [&](std::string_view part) { return says(text, part); };
  return std::ranges::none_of(kAboutSomethingElse, in_text) && std::ranges::none_of(kAboutTheAccount, in_text);
}

bool is_range_too_large(const Error& error) {
  if (error.code == "rpc_unavailable") return refusal_context(error, "cause") == "response_too_large";
  if (error.code != "rpc_error") return false;
  return refuses_range(error.message, refusal_context(error, "data")) ||
         (refusal_context(error, "rpcCode") == "-32005" && is_bare_limit(kLimitExceededCode, error.message));
}

std::optional<std::int64_t> suggested_span(const Error& error) {
  if (error.code != "rpc_error") return std::nullopt;
  const auto text = refusal_text(error.message, refusal_context(error, "data"));
  if (!text_refuses_range(text)) return std::nullopt;
  if (const auto span = bracketed_span(text)) return span;
  if (const auto span = retry_span(text)) return span;
  return named_span(text);
}

}  // namespace fencepost::evm
