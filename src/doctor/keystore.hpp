// Checks the key files: that the password opens each, and that only their owner can read them.
#pragma once

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

// Blocks: each file takes about a second and 256 MiB, as at the start of a node.
Findings check_keystore(const KeystoreConfig& keystore);

}  // namespace fencepost::doctor
