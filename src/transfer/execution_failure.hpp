// Which failures say that a transfer can never be executed. Such a failure counts as one of its ten tries.
#pragma once

#include <exception>

namespace fencepost::transfer {

// Whether a constraint, a unique key or a trigger refused the transfer (SQLSTATE class 23), so that a retry is refused
// again. False for what a retry or an operator cures: lock waits, deadlocks, cancellations, lost connections, lacking
// resources, a missing partition of the log, and a sequence that lags behind its table after a restore.
bool counts_as_try(const std::exception_ptr& failure);

}  // namespace fencepost::transfer
