// Whether the configured chains can be reached and are the chains they are said to be.
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

// What one endpoint said.
struct EndpointFacts {
  std::string url;  // scheme, host and port only: the rest may hold credentials
  std::optional<Error> failure;
  std::uint64_t chain_id = 0;
  std::uint64_t block = 0;
  TimePoint block_time{};
};

// One finding per endpoint. One that does not answer is a warning as long as another of the chain does; one on
// another chain is a failure always. What servers sent is not shown: some repeat the API key.
Findings assess_chain(const ChainConfig& chain, const std::vector<EndpointFacts>& endpoints, TimePoint now);

// Asks each endpoint in turn, each for at most `timeout`. Blocks, on a loop of its own in the calling thread.
Findings check_chain(const ChainConfig& chain, std::chrono::milliseconds timeout);

std::string chain_check_name(const ChainConfig& chain);

}  // namespace fencepost::doctor
