// `fencepost timelock flows|flow`
#pragma once

#include <cstddef>
#include <string>

#include "cli/api_access.hpp"
#include "cli/api_command.hpp"
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
  PageFlags page;
  bool json = false;
};

// The same id may be queued on several contracts: neither standard's id contains the contract.
struct FlowChoice {
  std::string flow_id;
  ChainId chain_id;
  std::string contract;
};
void add_flow_choice(CLI::App& command, FlowChoice& flow);
// "/api/v1/flows/<standard>/<chain>/<contract>/<id>". Errors: kNotFound `no_such_flow`; kInvalid `several_flows`; those
// of Api::get.
Result<std::string> find_flow_target(Api& api, const FlowChoice& choice);

// "/api/v1/flows?limit=50&status=waiting&sort=eta"
std::string flow_list_target(const FlowListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost::cli
