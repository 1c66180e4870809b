// `fencepost signer …`: manages key files on this machine and the signers of a running node.
#pragma once

#include <string>

#include <boost/json/array.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// A node's signers, one line each. For absent members see answer_text.hpp.
std::string signer_table(const boost::json::array& signers, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
