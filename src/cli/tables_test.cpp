// Each table fits the terminal, whatever its cells are.
#include <functional>

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/cluster.hpp"
#include "cli/mail/mail_files.hpp"
#include "cli/signer.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/calendar.hpp"
#include "cli/timelock/contract_view.hpp"
#include "cli/timelock/flow_view.hpp"
#include "cli/transfer/view.hpp"
#include "cli/tx/view.hpp"
#include "cli/webhook.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

// An item with every member that a table shows, each long.
json::array long_item() {
  json::object item;
  const std::string words =
      "a text of words that is longer than any terminal is wide, and then goes on for a while more";
  for (const auto* name : {"state",
                           "subState",
                           "status",
                           "txId",
                           "requestId",
                           "signer",
                           "leader",
                           "url",
                           "lastError",
                           "error",
                           "reason",
                           "why",
                           "from",
                           "to",
                           "node",
                           "nodeId",
                           "advertiseUrl",
                           "type",
                           "subject",
                           "seq",
                           "id",
                           "transferId",
                           "kind",
                           "initiatorId",
                           "targetId",
                           "amount",
                           "balanceAfter",
                           "address",
                           "standard",
                           "remark",
                           "contractAddress",
                           "flowId",
                           "initiatorAddress",
                           "chainId",
                           "name",
                           "version",
                           "reconcileReason",
                           "label"}) {
    item[name] = words;
  }
  item["status"] = "waiting";  // as a calendar shows it
  item["dueAt"] = item["expiredAt"] = item["createdAt"] = item["at"] = "2026-11-15T19:45:18Z";
  item["needsReconcile"] = true;
  item["endpoints"] = json::array{json::object{{"label", words}, {"healthy", true}}};
  return {std::move(item)};
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, columns_of(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

TEST(tables, no_line_is_wider_than_the_terminal) {
  const auto items = long_item();
  const auto mails = [](std::size_t width) {
    const notify::ReadMail mail{
        .message_id = std::string(100, 'm'), .date = {}, .from = {}, .to = std::string(100, 't')};
    return mail_table({{.path = {}, .mail = mail}}, width);
  };
  const auto of = [&](std::string (*table)(const json::array&, std::size_t)) {
    return [&items, table](std::size_t width) { return table(items, width); };
  };
  const std::pair<const char*, std::function<std::string(std::size_t)>> tables[] = {
      {"tx", of(tx_table)},
      {"history", of(history_table)},
      {"signer", of(signer_table)},
      {"transfer", of(transfer_table)},
      {"statement", of(statement_table)},
      {"webhook", of(webhook_table)},
      {"delivery", of(delivery_table)},
      {"dead letter", of(dead_letter_table)},
      {"timelock", of(timelock_table)},
      {"flow", of(flow_table)},
      {"calendar", of(calendar_text)},
      {"chain", of(chain_table)},
      {"node", of(node_table)},
      {"mail", mails},
  };
  for (const auto& [name, table] : tables) {
    EXPECT_GT(widest_line(table(kFullWidth)), 80U) << name << ": the cells are too short for this test";
    for (const std::size_t width : {80, 60}) EXPECT_LE(widest_line(table(width)), width) << name;
  }
}

}  // namespace
}  // namespace fencepost::cli
