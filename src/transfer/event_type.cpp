#include "transfer/event_type.hpp"

#include <fmt/format.h>

#include "base/id_text.hpp"

namespace fencepost::transfer {
namespace {

Result<std::string> read_guild(std::string_view text) {
  if (parse_id(text).value_or(0) > 0) return std::string(text);
  return fail(invalid("bad_request", fmt::format("expected the id of a guild, from 1 up: {}", kIdForm)));
}

}  // namespace

outbox::EventDomain event_domain() {
  outbox::EventDomain domain{.name = "transfer",
                             .read_scope = "transfer:read",
                             .kind = "guild",
                             .id_member = "guildId",
                             .read_id = read_guild,
                             .read_subject = outbox::read_uuid_subject,
                             .types = {}};
  for (const auto& row : kTransferEvents) domain.types.push_back(row.name);
  return domain;
}

}  // namespace fencepost::transfer
