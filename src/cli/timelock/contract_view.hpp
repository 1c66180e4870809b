// Watched contracts as text for a terminal. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

std::string timelock_details(const boost::json::value& timelock, std::size_t width = kFullWidth);
std::string timelock_table(const boost::json::array& timelocks, std::size_t width = kFullWidth);

// How far the history of a contract has been scanned.
struct HistoryProgress {
  bool complete = false;
  int percent = 0;  // 100 only when complete
  std::string from_block, next_block, to_block;
  std::string error;      // why it stands still; empty: it does not
  std::string halted_at;  // the block that cannot be decoded; empty: none
};
HistoryProgress history_of(const boost::json::value& timelock);

// "[#########...........]  45%  block 120 of 240"; at most 79 columns.
std::string history_bar(const HistoryProgress& history, std::size_t width = kFullWidth);
// "45%, block 120 of 240"
std::string history_progress_text(const HistoryProgress& history);

// Seconds of the API, of any size: "172800 s (2d)".
std::string seconds_text(const std::string& seconds);

}  // namespace fencepost::cli
