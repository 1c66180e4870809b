// The events about a transaction, as consumers get them. docs/events.md describes their fields. A test compares this
// list with docs/events.md and with the events that the sources append.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/name_table.hpp"
#include "base/uuid.hpp"
#include "outbox/feed/event_domain.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"

namespace fencepost::tx {

enum class TxEvent {
  kAccepted,
  kAllocated,
  kSubmitted,
  kReceiptUpdated,
  kConfirmations,
  kConfirmed,
  kFailed,
  kStuck,
  kResumed,
  kFinalityViolated,
  kReopened,
  kMinedAfterEnd,
};

inline constexpr auto kTxEvents = name_table<TxEvent>({
    {TxEvent::kAccepted, "TxAccepted", "The transaction is stored and will be sent."},
    {TxEvent::kAllocated, "TxAllocated", "A transaction that waited for a nonce got one."},
    {TxEvent::kSubmitted, "TxSubmitted", "An endpoint accepted the transaction, or it was found on the chain."},
    {TxEvent::kReceiptUpdated, "TxReceiptUpdated", "The transaction is in a block that is not final yet."},
    {TxEvent::kConfirmations, "TxConfirmations", "The list of blocks that confirm the transaction has changed."},
    {TxEvent::kConfirmed, "TxConfirmed", "The transaction is final and succeeded."},
    {TxEvent::kFailed, "TxFailed", "The use of the nonce is final, and the payload was not carried out."},
    {TxEvent::kStuck, "TxStuck", "The transaction waits for an operator or for the chain."},
    {TxEvent::kResumed, "TxResumed", "The transaction is no longer stuck, and has not ended."},
    {TxEvent::kFinalityViolated, "TxFinalityViolated", "A reorganization undid a transaction that had ended."},
    {TxEvent::kReopened, "TxReopened", "An operator sends again what a reorganization undid, or cancels it."},
    {TxEvent::kMinedAfterEnd, "TxMinedAfterEnd",
     "A block lists a transaction that had ended as never to be mined: its end was wrong."},
});

// The JSON of an event about a transaction: {"txId", "chainId", "signer", …more}.
std::string event_json(const SignerKey& key, const Uuid& tx_id, boost::json::object more = {});

// TxResumed for a step from STUCK to `to`. Each TxStuck is followed by it, unless the transaction ends.
std::string resumed_json(const SignerKey& key, const Uuid& tx_id, std::int64_t nonce, TxState to,
                         const std::string& why);

// What the log's readers must know about these events.
outbox::EventDomain event_domain();

}  // namespace fencepost::tx
