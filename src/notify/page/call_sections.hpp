// The calls of a flow, for a page. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "notify/model/flow_facts.hpp"
#include "notify/page/explorer_links.hpp"
#include "notify/page/page.hpp"
#include "notify/words/words.hpp"

namespace fencepost::notify {

// Anyone can queue calls of any size on an open timelock. What is left out is counted on the page.
inline constexpr std::size_t kCallsShown = 20;
inline constexpr std::size_t kArgumentsShown = 16;     // of each call
inline constexpr std::size_t kValueBytes = 514;        // of each argument, and of data that is not explained
inline constexpr std::size_t kCallsHtmlBytes = 60000;  // of all sections; one call is always shown

// One section for each call; at the end one that says how many are left out, if any.
std::vector<Section> call_sections(const std::vector<FlowCall>& calls, const CallWords& say,
                                   const ExplorerLinks& links);

// "1.5" for 1500000000000000000 wei; empty for what is no decimal number, and for 0.
std::string coin_text(std::string_view wei);

}  // namespace fencepost::notify
