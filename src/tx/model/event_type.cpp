#include "tx/model/event_type.hpp"

#include <boost/json/serialize.hpp>

namespace fencepost::tx {

std::string event_json(const SignerKey& key, const Uuid& tx_id, boost::json::object more) {
  more["txId"] = tx_id.to_string();
  more["chainId"] = key.chain_id;
  more["signer"] = key.signer;
  return boost::json::serialize(more);
}

}  // namespace fencepost::tx
