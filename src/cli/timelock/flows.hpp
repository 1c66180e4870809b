// `fencepost timelock flows|flow`
#pragma once

#include <cstddef>
#include <string>

#include "cli/api_access.hpp"
#include "cli/timelock/verbs.hpp"

namespace fencepost::cli {

struct FlowListFlags {
  ApiFlags api;
  std::string status;
  ChainId chain_id;
  std::string contract;
  std::string initiator;
  std::string standard;
  std::string q;
  std::string sort;
  bool upcoming = false;
  std::size_t limit = 50;
  bool json = false;
};

// "/api/v1/flows?limit=50&status=waiting&sort=eta"
std::string flow_list_target(const FlowListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost::cli
