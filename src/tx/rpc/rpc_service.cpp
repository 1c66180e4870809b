#include "tx/rpc/rpc_service.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/uint256.hpp"
#include "http/errors.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signer_access.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;
using Kind = RpcMethodKind;

RpcFailed failed_kind(const RpcMethod& method) {
  const bool sends = method.kind == Kind::kSend || method.kind == Kind::kSendRaw;
  return sends ? RpcFailed::kSend : RpcFailed::kRead;
}

// These are sent to the chain together, as one batch.
bool goes_to_chain_first(Kind kind) {
  return kind == Kind::kProxied || kind == Kind::kTransaction || kind == Kind::kReceipt;
}

evm::RpcCall call_for(const RpcRequestCall& call, const RpcMethod& method) {
  return {.method = call.method, .params = {}, .params_text = call.params, .label = std::string(method.label)};
}

}  // namespace

RpcService::RpcService(Parts parts, RpcOptions options) : parts_(std::move(parts)), options_(std::move(options)) {
  for (const auto& [id, chain] : parts_.chains) {
    for (const auto kind : rpc_method_kinds()) {
      for (const bool ok : {true, false}) {
        calls_total_[{id, class_of(kind), ok}] = &parts_.metrics.counter(
            "jsonrpc_calls_total", "Calls to /rpc/{chainId}, by what they do and how they were answered",
            {{"chain", chain->evm_chain.name()},
             {"class", std::string(class_of(kind))},
             {"result", ok ? "ok" : "error"}});
      }
    }
  }
}

Result<void> RpcService::check_chain(std::int64_t chain_id) const {
  const auto known = parts_.service.resolve_chain(chain_id);
  return known ? Result<void>() : fail(known.error());
}

awaitable<std::string> RpcService::answer(std::int64_t chain_id, RpcRequest request, RpcCaller caller) {
  const auto session =
      std::make_shared<const Session>(*parts_.chains.at(chain_id), std::move(request), std::move(caller));
  const auto& calls = session->request.calls;
  std::vector<std::optional<RpcReply>> replies(calls.size());
  std::vector<RpcMethod> methods(calls.size());
  std::vector<Planned> together;
  std::vector<awaitable<Replies>> tasks;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    methods[i] = find_rpc_method(calls[i].method, options_.denied_methods);
    replies[i] = refuse_call(*session, calls[i], methods[i]);
    if (replies[i]) continue;
    if (goes_to_chain_first(methods[i].kind)) {
      together.push_back({i, methods[i]});
    } else {
      tasks.push_back(run(session, {i, methods[i]}));
    }
  }
  if (!together.empty()) tasks.push_back(pass_on(session, std::move(together)));
  for (auto& done : co_await gather(std::move(tasks))) {
    for (auto& [index, reply] : done) replies[index] = std::move(reply);
  }

  std::string body;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    count(*session, methods[i], replies[i]->ok);
    if (!calls[i].id) continue;
    if (session->request.batch) body += body.empty() ? '[' : ',';
    append_rpc_reply(body, *calls[i].id, *replies[i]);
  }
  if (session->request.batch && !body.empty()) body += ']';
  co_return body;
}

void RpcService::count(const Session& session, const RpcMethod& method, bool ok) {
  calls_total_.at({session.chain.chain_id(), class_of(method.kind), ok})->Increment();
}

// The reasons to refuse a call without running it.
std::optional<RpcReply> RpcService::refuse_call(const Session& session, const RpcRequestCall& call,
                                                const RpcMethod& method) const {
  if (call.error) return refused(session, method, *call.error);
  if (method.kind == Kind::kDenied) {
    return refused(session, method,
                   not_found("method_denied", fmt::format("the method {} does not exist/is not available: "
                                                          "rpc.denied_methods of this node denies it",
                                                          call.method)));
  }
  if (method.kind == Kind::kSubscribe) {
    return refused(
        session, method,
        not_found("no_subscriptions", fmt::format("the method {} does not exist/is not available: subscriptions need a "
                                                  "WebSocket, which is not served; poll instead",
                                                  call.method)));
  }
  const std::string scope(method.scope);
  if (!session.caller.principal.has_scope(scope)) return refused(session, method, http::insufficient_scope(scope));
  return std::nullopt;
}

// Internal errors are logged here: the server logs only answers that fail as a whole.
RpcReply RpcService::refused(const Session& session, const RpcMethod& method, const Error& error) const {
  if (error.kind == ErrorKind::kInternal) {
    log::error("a JSON-RPC call failed", error,
               {{"httpRequestId", session.caller.http_request_id}, {"class", class_of(method.kind)}});
  }
  return rpc_refusal(error, failed_kind(method), session.caller.http_request_id);
}

// Turns every exception into the call's answer, so that a call fails alone.
awaitable<RpcService::Replies> RpcService::run(SessionPtr session, Planned planned) {
  Replies out;
  std::exception_ptr failure;
  try {
    out.emplace_back(planned.index, co_await handle(session, planned));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (failure) out.emplace_back(planned.index, refused(*session, planned.method, error_of(failure)));
  co_return out;
}

awaitable<RpcReply> RpcService::handle(SessionPtr session, Planned planned) {
  switch (planned.method.kind) {
    case Kind::kSend:
      co_return co_await send(std::move(session), planned.index);
    case Kind::kSendRaw:
      co_return co_await send_raw(std::move(session), planned);
    case Kind::kCount:
      co_return co_await transaction_count(std::move(session), planned);
    case Kind::kAccounts:
      co_return accounts(*session);
    case Kind::kChainId:
      co_return RpcReply::result(fmt::format(R"("0x{:x}")", session->chain.chain_id()));
    case Kind::kNetVersion:
      co_return RpcReply::result(fmt::format(R"("{}")", session->chain.chain_id()));
    default:
      co_return co_await pass_on_one(std::move(session), planned);
  }
}

RpcReply RpcService::accounts(const Session& session) const {
  json::array list;
  for (const auto& address : parts_.keys.addresses()) {
    if (may_use_signer(session.caller.principal, address)) list.emplace_back(address);
  }
  return RpcReply::result(json::serialize(list));
}

awaitable<RpcService::Replies> RpcService::pass_on(SessionPtr session, std::vector<Planned> planned) {
  std::exception_ptr failure;
  try {
    co_return co_await pass_on_unguarded(session, planned);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  Replies out;
  for (const auto& one : planned) out.emplace_back(one.index, refused(*session, one.method, error_of(failure)));
  co_return out;
}

awaitable<RpcService::Replies> RpcService::pass_on_unguarded(SessionPtr session, std::vector<Planned> planned) {
  std::vector<evm::RpcCall> calls;
  evm::RpcCallOptions options;
  for (const auto& one : planned) {
    calls.push_back(call_for(session->request.calls[one.index], one.method));
    options.repeatable = options.repeatable && one.method.repeatable;
  }
  auto& chain = session->chain;
  // A client's own signed transaction comes alone, and goes where ours go.
  const bool sends = planned.front().method.kind == Kind::kSendRaw;
  auto answers = co_await on_loop(chain.home, [&chain, calls = std::move(calls), options, sends]() mutable {
    auto& rpc = sends ? chain.evm_chain.submit_rpc() : chain.evm_chain.rpc();
    return rpc.forward(std::move(calls), options);
  });
  Replies out;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto& one = planned[i];
    auto& answer = answers[i];
    if (!answer) {
      out.emplace_back(one.index, refused(*session, one.method, answer.error()));
    } else if (!*answer) {
      out.emplace_back(one.index, RpcReply::error(std::move(answer->error().text)));
    } else if (one.method.kind != Kind::kProxied && (*answer)->is_null()) {
      out.emplace_back(one.index, co_await from_record(session, one));
    } else {
      out.emplace_back(one.index, RpcReply::result((*answer)->text()));
    }
  }
  co_return out;
}

awaitable<RpcReply> RpcService::pass_on_one(SessionPtr session, Planned planned) {
  std::vector<Planned> one{planned};
  auto replies = co_await pass_on_unguarded(std::move(session), std::move(one));
  co_return std::move(replies.front().second);
}

}  // namespace fencepost::tx
