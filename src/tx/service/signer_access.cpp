#include "tx/service/signer_access.hpp"

#include "http/errors.hpp"

namespace fencepost::tx {

std::optional<std::vector<std::string>> allowed_signers(const http::Principal& principal) {
  const auto* const signers = principal.restriction(kSignerKind);
  return signers != nullptr ? std::optional(*signers) : std::nullopt;
}

bool may_use_signer(const http::Principal& principal, std::string_view signer) {
  return principal.allows(kSignerKind, signer);
}

Result<void> check_allowed(const http::Principal& principal, const std::string& signer) {
  if (may_use_signer(principal, signer)) return {};
  return fail(
      http::forbidden("signer_not_allowed", "this API key may not use this signer; use another key or another signer")
          .with("field", "signer")
          .with("signer", signer));
}

}  // namespace fencepost::tx
