// A flow mail for tests: two days before the flow is ready.
#pragma once

#include <string>

#include "notify/model/mail_content.hpp"

namespace fencepost::notify::testing {

inline const std::string kContract = "0x6d903f6003cca6255d85cca4d3b5e5146dc33925";
inline const std::string kQueueHash = "0x" + std::string(64, '5');

inline FlowCall transfer_call() {
  return {.target = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
          .value = "0",
          .data = "0xa9059cbb",
          .signature = "transfer(address,uint256)",
          .selector = "0xa9059cbb",
          .arguments = {{"to", "address", "0x7a250d5630b4cf539739df2c5dacb4c659f2488d"}, {"", "uint256", "250000"}},
          .explained = true};
}

inline FlowMailInput flow_mail_input(Language language = Language::kEnglish) {
  FlowMailInput input;
  input.language = language;
  input.now = *parse_rfc3339("2026-11-18T09:00:00Z");
  input.chain_name = "mainnet";
  input.explorer_url = "https://etherscan.io";
  input.dashboard_url = "https://fencepost.example/flows/compound/1/x";
  input.unsubscribe_url = "https://fencepost.example/unsubscribe/12.ab";
  input.flow = {.ref = {.standard = "compound",
                        .chain_id = 1,
                        .contract = kContract,
                        .flow_id = "0x" + std::string(64, 'f'),
                        .generation = 1},
                .contract_name = "Treasury timelock",
                .initiator = "0xc0da02939e1441f497fd74f78ce7decb17b66529",
                .via = {},
                .due_at = parse_rfc3339("2026-11-20T09:00:00Z"),
                .expires_at = parse_rfc3339("2026-12-04T09:00:00Z"),
                .blocked_by = {},
                .queue_tx_hash = kQueueHash,
                .calls = {transfer_call()}};
  input.change = {.from = {},
                  .to = "waiting",
                  .correction = false,
                  .tx_hash = kQueueHash,
                  .changed_at = *parse_rfc3339("2026-11-18T08:57:00Z")};
  return input;
}

}  // namespace fencepost::notify::testing
