// What a mail about a flow says. Pure.
#pragma once

#include <string>

#include "notify/model/mail_content.hpp"
#include "notify/page/page.hpp"

namespace fencepost::notify {

// Both throw std::logic_error for a status that FlowTransition does not list.
Page flow_page(const FlowMailInput& input);

// One line of at most 180 characters: what happened, the contract, the chain.
std::string flow_subject(const FlowMailInput& input);

}  // namespace fencepost::notify
