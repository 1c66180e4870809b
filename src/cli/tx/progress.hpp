// The progress of one transaction as `fencepost tx watch` draws it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

struct TxProgress {
  std::string state;
  std::string sub_state;
  bool submitted = false;
  std::optional<std::int64_t> mined_block;
  bool reverted = false;             // in that block
  std::optional<std::int64_t> head;  // of the chain; none: not asked for
  std::string required;              // "20", "safe" or "finalized"; empty: not known

  bool final() const { return state == "CONFIRMED" || state == "FAILED_FINAL"; }
};

// Reads a transaction as the API answers it.
TxProgress read_progress(const boost::json::value& tx);
// Adds the data of its chain, from /api/v1/chains.
void add_chain(TxProgress& progress, const boost::json::value& chains, std::int64_t chain_id);

enum class Paint { kPlain, kColor };

// "ALLOCATED ▸ TRACKING ▸ [mined 3/20] ▸ CONFIRMED": past, current and future stages. Colour replaces the brackets. One
// line, no line break. If it is wider than `width`, past stages are left out first, then future ones.
std::string progress_line(const TxProgress& progress, Paint paint, std::size_t width = kFullWidth);

// "19:45:18.123  TRACKING (mined)  in block 7  node-a #12" of a step of the history; no line break. If it is wider than
// `width`, the node is left out first, then the reason is shortened.
std::string step_line(const boost::json::value& step, Paint paint, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
