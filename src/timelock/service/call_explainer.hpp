// Explains the calls of flows with the ABIs that users uploaded.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pg/pool.hpp"
#include "timelock/model/call_text.hpp"

namespace fencepost::timelock {

// One for each call, in their order; nullopt: the call cannot be explained without a guess. Throws as pg::Pool does.
awaitable<std::vector<std::optional<ExplainedCall>>> explain_calls(pg::Pool& pool, std::int64_t chain_id,
                                                                   std::vector<Call> calls);

}  // namespace fencepost::timelock
