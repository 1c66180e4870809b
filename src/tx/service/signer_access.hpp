// Which signers a caller may use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/auth.hpp"

namespace fencepost::tx {

// The kind of restriction in http::Principal that this module checks. Its values are lowercase addresses.
inline constexpr std::string_view kSignerKind = "signer";
// The signers that the caller may use. nullopt: every signer.
std::optional<std::vector<std::string>> allowed_signers(const http::Principal& principal);
bool may_use_signer(const http::Principal& principal, std::string_view signer);
// Error: kForbidden `signer_not_allowed` when the API key may not use the signer.
Result<void> check_allowed(const http::Principal& principal, const std::string& signer);

}  // namespace fencepost::tx
