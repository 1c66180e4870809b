// The steps of a transaction that could not be broadcast for the first time.
#pragma once

#include <string>

#include "tx/model/sub_state.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

// Retries later. Of several failures in a row, only the first is written to the history.
Step submit_waits(const DueSubmit& due, SubState sub_state, std::string message);
Step submit_stuck(const DueSubmit& due, SubState sub_state, std::string message);

}  // namespace fencepost::tx
