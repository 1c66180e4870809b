// For tests of timelocks behind endpoints that lie, lag, limit or fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/timelock_fixture.hpp"

namespace fencepost::test {

class TimelockFaults : public Timelocks {
 protected:
  // `count` flows that were scheduled, each in a block of its own.
  std::vector<std::string> schedule(const OpenZeppelinTimelock& timelock, std::uint64_t count,
                                    std::uint64_t first = 1) {
    std::vector<std::string> ids;
    ids.reserve(count);
    for (std::uint64_t number = first; number < first + count; ++number) {
      const TimelockCall call{recipient(1)};
      timelock.schedule(call, salt(number), 100'000);
      ids.push_back(OpenZeppelinTimelock::id(call, salt(number)));
    }
    return ids;
  }
  std::string flows() const {
    return cluster_->sql("SELECT count(*) FROM timelock_transaction_flows WHERE NOT removed");
  }
  // Every flow was announced as waiting, once.
  std::string announced_once() const {
    return cluster_->sql(
        "SELECT count(*) FROM (SELECT data->>'flowId' FROM outbox WHERE type = 'FlowStatusChanged' GROUP BY 1 HAVING "
        "count(*) = 1) AS f");
  }
  static std::int64_t number(const boost::json::value& hex) {
    return std::stoll(std::string(hex.as_string()), nullptr, 16);
  }
  // Refuses ranges of more than `most` blocks, in the words of a provider.
  static boost::json::object limited(const boost::json::object& call, boost::json::object reply, std::int64_t most) {
    const auto& filter = call.at("params").at(0).as_object();
    if (!filter.contains("fromBlock")) return reply;
    if (number(filter.at("toBlock")) - number(filter.at("fromBlock")) < most) return reply;
    reply.erase("result");
    reply["error"] = {{"code", -32602}, {"message", fmt::format("eth_getLogs is limited to a {} range", most)}};
    return reply;
  }
};

}  // namespace fencepost::test
