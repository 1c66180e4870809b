#include "notify/model/flow_change.hpp"

#include <boost/json/parse.hpp>

#include "base/json_reader.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kMaxText = 200;

TimePoint time_in(const JsonReader& in) {
  const auto time = parse_rfc3339(in.string(kMaxText));
  if (!time) in.reject("bad_event", "expected a time");
  return *time;
}

}  // namespace

FlowChange read_flow_change(std::string_view envelope) {
  const auto document = boost::json::parse(envelope);
  const auto in = JsonReader(document, "event").field("data");
  FlowChange out{.ref = {.standard = in.field("standard").string(kMaxText),
                         .chain_id = in.field("chainId").int64(),
                         .contract = in.field("contractAddress").string(kMaxText),
                         .flow_id = in.field("flowId").string(kMaxText),
                         .generation = in.field("generation").int64()},
                 .from = in.field("statusFrom").optional_string(kMaxText),
                 .to = in.field("statusTo").string(kMaxText),
                 .retracted = in.field("retracted").boolean(),
                 .retraction = in.field("retraction").int64(),
                 .tx_hash = in.field("txHash").optional_string(kMaxText),
                 .block = {},
                 .changed_at = time_in(in.field("changedAt")),
                 .initiator = in.field("initiatorAddress").string(kMaxText),
                 .via = in.field("viaAddress").optional_string(kMaxText)};
  if (const auto block = in.field("blockNumber"); block.present()) out.block = block.int64();
  return out;
}

}  // namespace fencepost::notify
