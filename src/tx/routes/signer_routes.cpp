#include <algorithm>
#include <set>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "tx/routes/handlers.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using Parts = RoutesParts;

json::value time_json(const std::optional<TimePoint>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object to_json(const SignerView& signer, bool has_key) {
  return {{"chainId", signer.key.chain_id},
          {"signer", signer.key.signer},
          {"hasKey", has_key},
          {"leader", text_or_null(signer.leader)},
          {"fencingToken", signer.fencing_token},
          {"nextNonce", optional_json(signer.next_nonce)},
          {"chainNonce", optional_json(signer.chain_nonce)},
          {"needsReconcile", signer.needs_reconcile},
          {"counts", signer.counts},
          {"oldestOpen", time_json(signer.oldest_open)}};
}

// Those that were ever used come from the database; the rest are keys of this node that wait for their first use.
void add_unused(std::vector<SignerView>& signers, const std::vector<std::int64_t>& chain_ids, const evm::KeyRing& keys,
                const http::Principal& principal) {
  std::set<SignerKey> used;
  for (const auto& signer : signers) used.insert(signer.key);
  for (const auto chain_id : chain_ids) {
    for (auto& address : keys.addresses()) {
      SignerView unused;
      unused.key = {chain_id, std::move(address)};
      unused.counts = json::object();
      if (!used.contains(unused.key) && may_use_signer(principal, unused.key.signer)) signers.push_back(unused);
    }
  }
  std::ranges::sort(signers, {}, &SignerView::key);
}

}  // namespace

awaitable<Response> get_signers(Request& request, Parts parts) {
  check_query(request, {});
  auto signers = co_await list_signers(parts.database.pool(), allowed_signers(*request.principal()));
  add_unused(signers, parts.manager.chain_ids(), parts.keys, *request.principal());
  json::array list;
  for (const auto& signer : signers) list.push_back(to_json(signer, parts.keys.find(signer.key.signer) != nullptr));
  co_return http::list_answer(std::move(list));
}

}  // namespace fencepost::tx
