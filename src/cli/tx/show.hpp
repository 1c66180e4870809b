// `fencepost tx get|history|list`
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/api_access.hpp"
#include "cli/api_command.hpp"

namespace fencepost::cli {

struct TxListFlags {
  ApiFlags api;
  std::string signer;
  std::string state;
  std::optional<std::int64_t> chain_id;
  PageFlags page;
  bool json = false;
};

// "/api/v1/tx?limit=50&signer=0x…"
std::string list_target(const TxListFlags& flags, std::size_t limit, const std::string& cursor);

}  // namespace fencepost::cli
