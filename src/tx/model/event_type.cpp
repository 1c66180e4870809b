#include "tx/model/event_type.hpp"

#include <boost/json/serialize.hpp>

#include "evm/address.hpp"

namespace fencepost::tx {

std::string event_json(const SignerKey& key, const Uuid& tx_id, boost::json::object more) {
  more["txId"] = tx_id.to_string();
  more["chainId"] = key.chain_id;
  more["signer"] = key.signer;
  return boost::json::serialize(more);
}

std::string resumed_json(const SignerKey& key, const Uuid& tx_id, std::int64_t nonce, TxState to,
                         const std::string& why) {
  return event_json(key, tx_id, {{"nonce", nonce}, {"state", kManagedTx.name(to)}, {"detail", why}});
}

outbox::EventDomain event_domain() {
  outbox::EventDomain domain{.name = "tx",
                             .read_scope = "tx:read",
                             .kind = "signer",
                             .id_member = "signer",
                             .read_id = evm::parse_address,
                             .read_subject = outbox::read_uuid_subject,
                             .types = {}};
  for (const auto& row : kTxEvents) domain.types.push_back(row.name);
  return domain;
}

}  // namespace fencepost::tx
