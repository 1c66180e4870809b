#include <algorithm>
#include <map>
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

// After this time the list is answered without balances.
constexpr std::chrono::milliseconds kBalancesTime{2000};

json::value time_json(const std::optional<TimePoint>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object to_json(const SignerView& signer, bool has_key) {
  return {
      {"chainId", signer.key.chain_id},
      {"signer", signer.key.signer},
      {"hasKey", has_key},
      {"leader", text_or_null(signer.leader)},
      {"fencingToken", signer.fencing_token},
      {"nextNonce", optional_json(signer.next_nonce)},
      {"chainNonce", optional_json(signer.chain_nonce)},
      {"needsReconcile", signer.reason.has_value()},
      {"reconcileReason", signer.reason ? json::value(kReconcileReasons.name(*signer.reason)) : json::value(nullptr)},
      {"gapNonce", optional_json(signer.gap_nonce)},
      {"counts", signer.counts},
      {"oldestOpen", time_json(signer.oldest_open)}};
}

// Adds the signers of this node's keys that were never used: the database lists only signers that were.
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

// ?balances=true|false
bool read_balances(const Request& request) {
  const auto text = request.query("balances");
  if (text && *text != "true" && *text != "false") http::refuse_parameter("balances", "true or false", *text);
  return text == "true";
}

awaitable<std::map<SignerKey, Uint256>> balances_of(TxManager& manager, const std::vector<SignerView>& signers) {
  std::vector<SignerKey> keys;
  keys.reserve(signers.size());
  for (const auto& signer : signers) keys.push_back(signer.key);
  co_return co_await manager.balances(std::move(keys), kBalancesTime);
}

}  // namespace

awaitable<Response> get_signers(Request& request, Parts parts) {
  check_query(request, {"balances"});
  const bool with_balances = read_balances(request);
  auto signers = co_await list_signers(parts.database.pool(), allowed_signers(*request.principal()));
  add_unused(signers, parts.manager.chain_ids(), parts.keys, *request.principal());
  std::map<SignerKey, Uint256> balances;
  if (with_balances) balances = co_await balances_of(parts.manager, signers);
  json::array list;
  for (const auto& signer : signers) {
    auto item = to_json(signer, parts.keys.find(signer.key.signer) != nullptr);
    const auto found = balances.find(signer.key);
    if (with_balances)
      item["balance"] = found == balances.end() ? json::value() : json::value(to_decimal(found->second));
    list.push_back(std::move(item));
  }
  co_return http::list_answer(std::move(list));
}

}  // namespace fencepost::tx
