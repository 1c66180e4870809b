// `fencepost transfer …`: what a person or a script asks of the economy, by way of the API.
//
// Ids and amounts are decimal digits, as the API takes them: 64 bits pass through unharmed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "cli/api_client.hpp"

namespace fencepost {

struct TransferSendFlags {
  ApiFlags api;
  std::string guild;
  std::string from;
  std::string to;
  std::string amount;
  std::string reason;
  std::string mode;  // "sync" or "pool"; empty: as the node is set
  std::optional<std::int64_t> expires_hours;
  std::string key;  // empty: one is made, and shown
  bool wait = false;
  std::string timeout;  // of that; empty: as long as it takes
  bool json = false;
};
int transfer_send_command(const TransferSendFlags& flags);

struct TransferFlags {
  ApiFlags api;
  std::string transfer_id;
  bool json = false;
};
int transfer_get_command(const TransferFlags& flags);
int transfer_cancel_command(const TransferFlags& flags);

struct TransferListFlags {
  ApiFlags api;
  std::string guild;
  std::string status;
  std::size_t limit = 50;
  bool json = false;
};
int transfer_list_command(const TransferListFlags& flags);

struct TransferWatchFlags {
  TransferFlags transfer;
  std::string timeout;
};
int transfer_watch_command(const TransferWatchFlags& flags);

struct StatementFlags {
  ApiFlags api;
  std::string guild;
  std::string member;
  std::optional<std::size_t> limit;  // none: 50, or of a CSV as much as the API gives
  bool csv = false;
  bool json = false;
};
int transfer_statement_command(const StatementFlags& flags);

// An operator makes money, or takes it out.
struct IssueFlags {
  ApiFlags api;
  std::string verb;  // "mint" or "burn"
  std::string guild;
  std::string member;
  std::string amount;
  std::string reason;
  std::string key;  // empty: one is made, and shown
  bool json = false;
};
int transfer_issue_command(const IssueFlags& flags);

struct TransferAuditFlags {
  ApiFlags api;
  bool json = false;
};
// kExitFailedForGood when a check does not hold.
int transfer_audit_command(const TransferAuditFlags& flags);

// The body of the create: only what was given.
boost::json::object transfer_body(const TransferSendFlags& flags, const std::string& key);
// "/api/v1/transfers?guildId=7&limit=50&status=checking"
std::string transfer_list_target(const TransferListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost
