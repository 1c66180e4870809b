// `fencepost transfer get|watch|cancel|list|statement`
#pragma once

#include <cstddef>
#include <string>

#include "cli/api_access.hpp"
#include "cli/api_command.hpp"

namespace fencepost::cli {

struct TransferListFlags {
  ApiFlags api;
  std::string guild;
  std::string status;
  PageFlags page;
  bool json = false;
};

// "/api/v1/transfers?guildId=7&limit=50&status=checking"
std::string transfer_list_target(const TransferListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost::cli
