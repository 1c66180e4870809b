// `fencepost signer …`: manages key files on this machine and the signers of a running node.
#pragma once

#include <string>

#include <boost/json/array.hpp>

namespace fencepost::cli {

// A node's signers, one line each. For absent members see answer_text.hpp.
std::string signer_table(const boost::json::array& signers);

}  // namespace fencepost::cli
