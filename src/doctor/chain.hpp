// Checks that the endpoints of each configured chain answer, serve the configured chain id, and are not behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

// The answer of one endpoint, or why there is none.
struct EndpointFacts {
  std::string url;  // scheme, host and port only: the rest may hold credentials
  std::optional<Error> failure;
  std::uint64_t chain_id = 0;
  std::uint64_t block = 0;
  TimePoint block_time{};
  bool submits = false;      // one of submit_urls: only its chain id counts
  bool has_chain_id = true;  // a relay need not tell it
};

// One finding per endpoint. One whose newest block is much older than another endpoint's is a warning. An endpoint that
// does not answer is a warning while another endpoint of the chain answers, otherwise a failure. A wrong chain id is
// always a failure. Server replies are not shown: some repeat the API key.
Findings assess_chain(const ChainConfig& chain, const std::vector<EndpointFacts>& endpoints, TimePoint now);

// Asks the endpoints one after the other, each for at most `timeout`. Blocks the calling thread, on its own loop.
Findings check_chain(const ChainConfig& chain, std::chrono::milliseconds timeout);

std::string chain_check_name(const ChainConfig& chain);

}  // namespace fencepost::doctor
