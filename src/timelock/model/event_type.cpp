#include "timelock/model/event_type.hpp"

#include <ranges>
#include <vector>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/id_text.hpp"
#include "evm/address.hpp"
#include "timelock/model/standard.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kChainDigits = 18;

// "timelock/<standard>/<chainId>/<contract>", and "/<flowId>" for one flow.
Result<std::string> read_subject(std::string_view text) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, '/')) parts.emplace_back(part);
  const bool sized = parts.size() == 4 || parts.size() == 5;
  const bool good = sized && kStandards.find(parts[1]) && parts[2].size() <= kChainDigits &&
                    parse_id(parts[2]).value_or(0) > 0 && is_address(parts[3]) &&
                    (parts.size() == 4 || is_hash32(parts[4]));
  if (good) return std::string(text);
  return fail(invalid("bad_request",
                      "expected timelock/<standard>/<chainId>/<contract>, or that and /<flowId>, all in lowercase"));
}

}  // namespace

outbox::EventDomain event_domain() {
  outbox::EventDomain domain{.name = "timelock",
                             .read_scope = "timelock:read",
                             .kind = "contract",
                             .id_member = "contractAddress",
                             .read_id = evm::parse_address,
                             .read_subject = read_subject,
                             .types = {}};
  for (const auto& row : kTimelockEvents) domain.types.push_back(row.name);
  return domain;
}

}  // namespace fencepost::timelock
