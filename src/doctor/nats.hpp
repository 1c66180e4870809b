// Checks that NATS can be reached and that the stream takes the events. Publishes nothing and creates nothing.
#pragma once

#include "outbox/nats/nats_options.hpp"
#include "outbox/nats/nats_session.hpp"

#include "doctor/doctor.hpp"

namespace fencepost::doctor {

Finding assess_nats(const outbox::NatsOptions& options, const outbox::NatsResult<outbox::NatsStreamState>& stream);

// Blocks for at most the timeout for each server, and once more for the stream. If NATS is not configured, passes
// without connecting and says so.
Finding check_nats(const outbox::NatsOptions& options);

}  // namespace fencepost::doctor
