// The part of TxService that hands a create to the node that leads its signer, and looks for the next leader while it
// waits.
//
// A create is stored once, however many nodes get it: its requestId is looked up under the cursor's lock, and the id
// that the first node assigned is a primary key. docs/correctness.md explains why the answer is right.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "tx/model/payload.hpp"
#include "tx/service/tx_service.hpp"

namespace fencepost::tx {
namespace {

// While nothing says that the leader has changed.
constexpr std::chrono::milliseconds kLookAgain{250};
// While no node has the key: it takes a node seconds to start, and many requests may be waiting for it.
constexpr std::chrono::milliseconds kLookForKey{1'000};

Error unknown_signer() {
  return invalid("unknown_signer", "signer: no node has a key for this address").with("field", "signer");
}

// Another node has the key, and this node cannot pass the request on to it.
Error key_elsewhere(const LeaseView& holder, bool forwarding) {
  return naming(not_leader(forwarding ? "the node that has the key of the signer has no advertised URL"
                                      : "another node has the key of the signer, and forwarding is turned off"),
                holder);
}

std::string forwarded_body(const CreateTx& request) {
  boost::json::object body{{"chainId", request.key.chain_id},
                           {"signer", request.key.signer},
                           {"payload", parse_json(request.payload.canonical(), 1 << 20).value()},
                           {"preflight", request.preflight}};
  if (request.request_id) body["requestId"] = *request.request_id;
  return boost::json::serialize(body);
}

}  // namespace

// This node cannot create the transaction: it has no key of the signer, or the chain is not configured here.
awaitable<TxService::Tried> TxService::try_elsewhere(Course& course) {
  const auto& request = course.request;
  if (auto known = co_await answer_known(course)) co_return known;
  if (request.forwarded) co_return fail(not_leader("this node has no key of the signer"));
  auto holder = co_await leases_.key_holder(request.key);
  if (holder && options_.forwarding && !holder->advertise_url.empty()) {
    co_return co_await forward(course, std::move(*holder));
  }
  if (holder) co_return fail(key_elsewhere(*holder, options_.forwarding));
  const auto chain_id = request.key.chain_id;
  if (!chains_.contains(chain_id) && !course.maybe_stored && !co_await leases_.chain_holder(chain_id)) {
    co_return fail(unknown_chain());
  }
  const bool known = co_await leases_.is_known(request.key);
  if (!known && !course.maybe_stored) co_return fail(unknown_signer());
  // The node that has the key may be restarting.
  course.keyless = true;
  co_await pause(course, {.key = request.key}, kLookForKey);
  co_return std::nullopt;
}

awaitable<TxService::Tried> TxService::pass_on(Course& course, LeaseView leader) {
  // The first node looks for the leader again.
  if (course.request.forwarded) co_return fail(not_leader("this node does not lead the signer"));
  if (!options_.forwarding) co_return fail(not_leader("forwarding is turned off"));
  if (leader.registered && leader.advertise_url.empty()) {
    co_return fail(not_leader("the leader has no advertised URL"));
  }
  if (!leader.advertise_url.empty()) co_return co_await forward(course, std::move(leader));
  co_await pause(course, leader, kLookAgain);
  co_return std::nullopt;
}

awaitable<TxService::Tried> TxService::forward(Course& course, LeaseView leader) {
  using namespace asio::experimental::awaitable_operators;
  const auto& request = course.request;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(course.deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) co_return std::nullopt;
  auto asked =
      leaders_.create(leader.advertise_url, request.authorization, request.tx_id, forwarded_body(request), left);
  auto first = std::move(asked) || watch_.moved(leader, course.deadline + kLookAgain);
  auto outcome = co_await std::move(first);
  auto* answer = std::get_if<0>(&outcome);
  if (answer == nullptr) {
    course.maybe_stored = true;
    co_return std::nullopt;
  }
  if (*answer) co_return co_await stored_by_leader(**answer);
  auto& error = answer->error();
  const bool lost = error.code == kLeaderLost;
  course.maybe_stored = course.maybe_stored || lost;
  if (error.code == "tx_id_taken" && course.maybe_stored) co_return co_await answer_by_id(course);
  if (!lost && error.code != "not_leader" && error.code != "stopping") co_return fail(std::move(error));
  co_await pause(course, leader, kLookAgain);
  co_return std::nullopt;
}

awaitable<TxService::Tried> TxService::stored_by_leader(LeaderClient::Answer answer) {
  auto tx = co_await find_tx(database_.pool(), answer.tx_id);
  if (!tx) co_return fail(internal("forwarded_lost", "the leader accepted a transaction that is not in the database"));
  co_return CreatedTx{std::move(*tx), answer.existing};
}

awaitable<> TxService::pause(const Course& course, const LeaseView& leader, std::chrono::milliseconds at_most) {
  co_await watch_.moved(leader, std::min(course.deadline, std::chrono::steady_clock::now() + at_most));
}

awaitable<TxService::Tried> TxService::answer_by_id(const Course& course) {
  const auto& request = course.request;
  auto tx = co_await find_tx(database_.pool(), request.tx_id);
  if (!tx) co_return std::nullopt;
  const auto same = tx->key == request.key && tx->request_id == request.request_id &&
                    stored_payload(boost::json::serialize(tx->payload)).hash() == course.payload_hash;
  if (!same) co_return fail(conflict("tx_id_taken", "another transaction already has this txId"));
  // A leader stored it during this request; to the client it is new.
  co_return CreatedTx{std::move(*tx), false};
}

}  // namespace fencepost::tx
