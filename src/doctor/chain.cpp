#include "doctor/chain.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "base/json_reader.hpp"
#include "base/random.hpp"
#include "base/uint256.hpp"
#include "evm/json_rpc.hpp"
#include "http/client.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kStaleAfter = 5min;
constexpr auto kBehindAfter = 1min;
constexpr std::string_view kMethodNotFound = "-32601";

struct Cause {
  std::string_view code;  // of the error inside `rpc_unavailable`
  std::string_view fix;
};
constexpr std::array kCauses{
    Cause{"connect_failed", "check that the node is running, and the host and port in rpc_urls"},
    Cause{"timeout", "check for a firewall on the path and for an overloaded node"},
    Cause{"tls_failed",
          "the certificate must be for this host, not expired, and signed by an authority that this machine trusts"},
    Cause{"http_status", "check the path and the API key of this URL in rpc_urls"},
    Cause{"endpoint_sick", "check the quota at the provider, or add a second URL to rpc_urls"},
};
constexpr std::string_view kNotANode = "check that this URL in rpc_urls is the JSON-RPC endpoint of an EVM node";

std::string_view context_of(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return {};
}

// The client's reason without its preamble and without the quoted reply: the server may repeat the API key there.
std::string reason_of(const Error& error) {
  if (const auto code = context_of(error, "rpcCode"); !code.empty()) {
    return fmt::format("answered with JSON-RPC error {}", code);
  }
  constexpr std::string_view kPreamble = "the last one: ";
  std::string_view text = error.message;
  if (const auto at = text.find(kPreamble); at != std::string_view::npos) text.remove_prefix(at + kPreamble.size());
  text = text.substr(0, text.find('"'));
  while (text.ends_with(' ') || text.ends_with(':')) text.remove_suffix(1);
  return one_line(text);
}

std::string fix_of(const Error& error) {
  const auto code = context_of(error, "cause");
  const auto* const cause = std::ranges::find(kCauses, code, &Cause::code);
  return std::string(cause == kCauses.end() ? kNotANode : cause->fix);
}

std::string age_text(std::chrono::seconds age) {
  if (age < 2min) return fmt::format("{} s", age.count());
  if (age < 2h) return fmt::format("{} min", std::chrono::floor<std::chrono::minutes>(age).count());
  if (age < 48h) return fmt::format("{} h", std::chrono::floor<std::chrono::hours>(age).count());
  return fmt::format("{} d", std::chrono::floor<std::chrono::days>(age).count());
}

bool is_right(const ChainConfig& chain, const EndpointFacts& endpoint) {
  return !endpoint.failure && endpoint.chain_id == static_cast<std::uint64_t>(chain.chain_id);
}

Finding assess_endpoint(const ChainConfig& chain, const EndpointFacts& endpoint, bool others_serve, TimePoint newest,
                        TimePoint now) {
  const auto check = chain_check_name(chain);
  if (endpoint.failure) {
    auto detail = fmt::format("{}: {}", endpoint.url, reason_of(*endpoint.failure));
    if (others_serve) return warned(check, detail + " (another endpoint serves this chain)", fix_of(*endpoint.failure));
    return failed(check, std::move(detail), fix_of(*endpoint.failure));
  }
  if (!is_right(chain, endpoint)) {
    return failed(check, fmt::format("{} is on chain {}, not {}", endpoint.url, endpoint.chain_id, chain.chain_id),
                  fmt::format("correct chain_id or the URL in {}", endpoint.submits ? "submit_urls" : "rpc_urls"));
  }
  if (endpoint.submits) {
    return passed(check, fmt::format("{}, for transactions, {}", endpoint.url,
                                     endpoint.has_chain_id ? fmt::format("chain id {}", endpoint.chain_id)
                                                           : "does not tell its chain id"));
  }
  const auto age = std::max(std::chrono::floor<std::chrono::seconds>(now - endpoint.block_time), 0s);
  auto detail =
      fmt::format("{}, chain id {}, block {}, {} old", endpoint.url, endpoint.chain_id, endpoint.block, age_text(age));
  if (newest - endpoint.block_time >= kBehindAfter) {
    const auto lag = std::chrono::floor<std::chrono::seconds>(newest - endpoint.block_time);
    return warned(check, fmt::format("{}, {} behind another endpoint", detail, age_text(lag)),
                  "check whether the node is still syncing or has lost its peers; it is used only when others fail");
  }
  if (age < kStaleAfter) return passed(check, std::move(detail));
  return warned(check, std::move(detail), "check whether the node is still syncing or has lost its peers");
}

std::string public_part(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed) return "(not a URL)";
  return fmt::format("{}://{}", std::string_view(parsed->scheme()), std::string_view(parsed->encoded_host_and_port()));
}

std::uint64_t quantity_of(const JsonReader& field, std::uint64_t max) {
  const auto value = parse_quantity(field.string(80));
  if (!value || *value > max) field.reject("bad_rpc_result", fmt::format("expected a quantity up to {}", max));
  return static_cast<std::uint64_t>(*value);
}

// Number and time of the newest block. Throws Exception if the answer is not a block.
void read_block(const boost::json::value& document, EndpointFacts& facts) {
  constexpr std::uint64_t kYear9999 = 253'402'300'799;  // later times would overflow
  const JsonReader block(document, "the newest block");
  facts.block = quantity_of(block.field("number"), std::numeric_limits<std::uint64_t>::max());
  facts.block_time = TimePoint(std::chrono::seconds(quantity_of(block.field("timestamp"), kYear9999)));
}

awaitable<EndpointFacts> ask_endpoint(evm::JsonRpcClient& rpc, std::size_t index, std::string url) {
  EndpointFacts facts{.url = std::move(url)};
  evm::RpcCallOptions only_this;
  only_this.endpoint = index;
  const auto id = co_await rpc.chain_id(only_this);
  if (!id) {
    facts.failure = id.error();
    co_return facts;
  }
  facts.chain_id = *id;
  evm::RpcCall question{"eth_getBlockByNumber", {"latest", false}};
  const auto block = co_await rpc.call(std::move(question), only_this);
  if (!block) {
    facts.failure = block.error();
    co_return facts;
  }
  try {
    const auto document = block->as_json();
    if (!document) throw Exception(document.error());
    read_block(*document, facts);
  } catch (const Exception& e) {
    facts.failure = e.error();
  }
  co_return facts;
}

awaitable<EndpointFacts> ask_relay(evm::JsonRpcClient& rpc, std::size_t index, std::string url,
                                   std::uint64_t expected) {
  EndpointFacts facts{.url = std::move(url), .failure = {}, .submits = true};
  evm::RpcCallOptions only_this;
  only_this.endpoint = index;
  const auto id = co_await rpc.chain_id(only_this);
  if (id) {
    facts.chain_id = *id;
  } else if (context_of(id.error(), "rpcCode") == kMethodNotFound) {
    facts.chain_id = expected;
    facts.has_chain_id = false;
  } else {
    facts.failure = id.error();
  }
  co_return facts;
}

awaitable<std::vector<EndpointFacts>> ask_endpoints(const ChainConfig& chain, std::chrono::milliseconds timeout) {
  std::vector<std::string> urls;
  urls.reserve(chain.rpc_urls.size() + chain.submit_urls.size());
  for (const auto& url : chain.rpc_urls) urls.emplace_back(url.reveal());
  for (const auto& url : chain.submit_urls) urls.emplace_back(url.reveal());
  const auto executor = co_await this_executor();
  http::Client http(executor, {.connect_timeout = timeout, .total_timeout = timeout});
  const SystemClock clock;
  SystemRandom random;
  Metrics metrics;
  evm::JsonRpcClient rpc(http, urls, {.timeout = timeout}, clock, random, metrics);
  std::vector<EndpointFacts> out;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (i < chain.rpc_urls.size()) {
      out.push_back(co_await ask_endpoint(rpc, i, public_part(urls[i])));
    } else {
      out.push_back(co_await ask_relay(rpc, i, public_part(urls[i]), static_cast<std::uint64_t>(chain.chain_id)));
    }
  }
  co_return out;
}

}  // namespace

std::string chain_check_name(const ChainConfig& chain) {
  return "chain " + chain.name;
}

Findings assess_chain(const ChainConfig& chain, const std::vector<EndpointFacts>& endpoints, TimePoint now) {
  // Reads and broadcasts are served by different endpoints where there are relays.
  const auto serves = [&](bool submits) {
    return std::ranges::any_of(
        endpoints, [&](const auto& endpoint) { return endpoint.submits == submits && is_right(chain, endpoint); });
  };
  TimePoint newest{};
  for (const auto& endpoint : endpoints) {
    if (is_right(chain, endpoint)) newest = std::max(newest, endpoint.block_time);
  }
  Findings findings;
  for (const auto& endpoint : endpoints) {
    findings.push_back(assess_endpoint(chain, endpoint, serves(endpoint.submits), newest, now));
  }
  return findings;
}

Findings check_chain(const ChainConfig& chain, std::chrono::milliseconds timeout) {
  const auto endpoints = run_blocking(ask_endpoints(chain, timeout));
  return assess_chain(chain, endpoints, SystemClock().now());
}

}  // namespace fencepost::doctor
