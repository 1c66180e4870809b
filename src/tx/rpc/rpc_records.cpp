// The part of RpcService that answers from the node's records: nonces, and transactions that the chain does not know
// yet.
#include <algorithm>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/json.hpp"
#include "evm/address.hpp"
#include "runtime/on_loop.hpp"
#include "tx/rpc/rpc_service.hpp"
#include "tx/rpc/transaction_json.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signer_access.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

// The strings among the parameters; nullopt when there are none that can be read. The chain reports what is wrong with
// them.
std::optional<std::vector<std::string>> string_params(const std::string& params) {
  const auto document = parse_json(params, params.size());
  const auto* list = document ? document->if_array() : nullptr;
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& item : *list) {
    if (!item.is_string()) return std::nullopt;
    out.emplace_back(item.get_string());
  }
  return out;
}

std::optional<std::string> address_param(const std::vector<std::string>& params) {
  auto address = params.empty() ? Result<std::string>(fail(Error{})) : evm::parse_address(params.front());
  return address ? std::optional(std::move(*address)) : std::nullopt;
}

std::optional<Uint256> count_in(const RpcReply& reply) {
  const std::string_view text = reply.text;
  if (!reply.ok || text.size() < 2) return std::nullopt;
  const auto count = parse_quantity(text.substr(1, text.size() - 2));
  return count ? std::optional(*count) : std::nullopt;
}

}  // namespace

// Counts what has a nonce. A transaction that waits for one is not counted: which nonce it gets is not decided.
awaitable<RpcReply> RpcService::transaction_count(SessionPtr session, Planned planned) {
  const auto params = string_params(session->request.calls[planned.index].params);
  const bool pending = params && params->size() == 2 && params->back() == "pending";
  const auto signer = pending ? address_param(*params) : std::nullopt;
  if (!signer || !may_use_signer(session->caller.principal, *signer)) {
    co_return co_await pass_on_one(std::move(session), planned);
  }
  const auto cursor = co_await find_next_nonce(parts_.database.pool(), {session->chain.chain_id(), *signer});
  if (!cursor) co_return co_await pass_on_one(std::move(session), planned);
  auto next = Uint256(cursor->next_nonce);
  if (session->chain.options.is_shared(*signer)) {
    // Another sender may be ahead of the cursor, which is compared with the chain only now and then.
    auto reply = co_await pass_on_one(std::move(session), planned);
    const auto on_chain = count_in(reply);
    if (!on_chain) co_return reply;
    next = std::max(next, *on_chain);
  }
  co_return RpcReply::result(fmt::format(R"("{}")", to_quantity(next)));
}

// A transaction that was signed elsewhere takes a nonce that the cursor does not know of. An exclusive signer would
// then need an operator, so this node does not broadcast it. Types that evm/ cannot decode are passed on.
awaitable<RpcReply> RpcService::send_raw(SessionPtr session, Planned planned) {
  const auto params = string_params(session->request.calls[planned.index].params);
  const auto raw = params && params->size() == 1 ? from_hex0x(params->front()) : Result<Bytes>(fail(Error{}));
  const auto decoded = raw ? evm::decode_transaction(*raw) : Result<evm::DecodedTransaction>(fail(Error{}));
  if (decoded) {
    const auto sender = evm::address_text(decoded->sender);
    const SignerKey key{session->chain.chain_id(), sender};
    const bool managed =
        parts_.keys.find(sender) != nullptr || (co_await find_next_nonce(parts_.database.pool(), key)).has_value();
    if (managed && !session->chain.options.is_shared(sender)) {
      co_return refused(*session, planned.method,
                        conflict("managed_signer",
                                 "Fencepost assigns the nonces of this sender, so it does not "
                                 "broadcast what was signed elsewhere; use eth_sendTransaction")
                            .with("signer", sender));
    }
  }
  co_return co_await pass_on_one(std::move(session), planned);
}

// For a transaction that the chain does not know. `null` unless it is one of ours and the caller may see its signer.
awaitable<RpcReply> RpcService::from_record(SessionPtr session, Planned planned) {
  const auto params = string_params(session->request.calls[planned.index].params);
  const auto none = RpcReply::result("null");
  if (!params || params->size() != 1) co_return none;
  const auto hash = from_hex0x_fixed<32>(params->front());
  if (!hash) co_return none;
  const auto found = co_await find_attempt(parts_.database.pool(), session->chain.chain_id(), to_hex0x(*hash));
  if (!found || !may_use_signer(session->caller.principal, found->signer)) co_return none;
  if (planned.method.kind == RpcMethodKind::kReceipt) {
    co_return found->receipt ? RpcReply::result(*found->receipt) : none;
  }
  if (!found->raw) co_return none;
  const auto decoded = evm::decode_transaction(*found->raw);
  if (!decoded) throw Exception(internal("bad_stored_bytes", "a stored transaction cannot be decoded"));
  co_return RpcReply::result(transaction_json(*decoded, found->receipt));
}

}  // namespace fencepost::tx
