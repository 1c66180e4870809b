// `fencepost timelock …`: watched contracts and their flows, through the API.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/timelock/verbs.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kMostContracts = 10'000;

std::string lowercase(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

void add_timelock(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_timelock_import(noun, run);
  add_timelock_contracts(noun, run);
  add_timelock_flows(noun, run);
  add_timelock_verify(noun, run);
}

std::string timelock_target(std::int64_t chain_id, const std::string& address) {
  return fmt::format("/api/v1/timelocks/{}/{}", chain_id, http::percent_encode(address));
}

Result<std::string> find_timelock_target(Api& api, const std::string& address, ChainId chain_id) {
  if (chain_id) return timelock_target(*chain_id, address);
  const auto list = read_pages(api, {.limit = kMostContracts}, [](std::size_t limit, const std::string& cursor) {
    auto target = fmt::format("/api/v1/timelocks?limit={}", limit);
    add_parameter(target, "cursor", cursor);
    return target;
  });
  if (!list) return fail(list.error());
  std::vector<std::int64_t> chains;
  for (const auto& contract : list->items) {
    if (text_at(contract, "address") != lowercase(address)) continue;
    if (const auto chain = int_at(contract, "chainId")) chains.push_back(*chain);
  }
  if (chains.empty()) {
    return fail(not_found("no_such_timelock", fmt::format("{} is not watched on any chain.", address)));
  }
  if (chains.size() > 1) {
    return fail(invalid("several_chains", fmt::format("{} is watched on the chains {}: name one with --chain.", address,
                                                      fmt::join(chains, ", "))));
  }
  return timelock_target(chains.front(), address);
}

void add_parameter(std::string& target, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  const auto separator = target.find('?') == std::string::npos ? '?' : '&';
  target += fmt::format("{}{}={}", separator, name, http::percent_encode(value));
}

}  // namespace fencepost::cli
