// `fencepost timelock flows --upcoming`: what becomes ready and what expires, by day. Pure but for the time zone of the
// process (TZ).
#pragma once

#include <string>

#include <boost/json/array.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// Flows that are waiting or ready, of GET /api/v1/flows; others are left out. Days and times are local, with their
// offset from UTC; the soonest is first. What is ready already comes before the days.
std::string calendar_text(const boost::json::array& flows, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
