#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "evm/address.hpp"
#include "http/request_reader.hpp"
#include "timelock/routes/handlers.hpp"
#include "timelock/service/verify_run.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::chrono::milliseconds kVerifyBudget = std::chrono::seconds(5);
constexpr std::size_t kMaxCursor = 200;

// "1:0xcontract:0xflow"; the flow is empty when the contract is done.
std::string verify_cursor_text(const VerifyCursor& cursor) {
  return std::to_string(cursor.contract.chain_id) + ":" + cursor.contract.address + ":" + cursor.flow_id;
}

VerifyCursor read_verify_cursor(const JsonReader& in) {
  const auto text = in.string(kMaxCursor);
  const auto first = text.find(':');
  const auto second = first == text.npos ? text.npos : text.find(':', first + 1);
  const auto chain = second == text.npos
                         ? std::nullopt
                         : http::detail::parse_parameter<std::int64_t>(std::string_view(text).substr(0, first));
  if (chain.value_or(0) > 0) {
    auto address = text.substr(first + 1, second - first - 1);
    auto flow_id = text.substr(second + 1);
    const bool is_address = from_hex0x_fixed<20>(address).has_value() && lowercase(address) == address;
    const bool is_id = flow_id.empty() || (from_hex0x_fixed<32>(flow_id).has_value() && lowercase(flow_id) == flow_id);
    if (is_address && is_id) return {.contract = {*chain, std::move(address)}, .flow_id = std::move(flow_id)};
  }
  in.reject("bad_request", "expected a nextCursor of this route");
}

VerifyScope read_scope(Request& request) {
  VerifyScope scope;
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"chainId", "contract", "cursor"});
  if (const auto chain = in.field("chainId"); chain.present()) scope.chain_id = chain.int64(1);
  if (const auto cursor = in.field("cursor"); cursor.present()) scope.after = read_verify_cursor(cursor);
  if (const auto contract = in.field("contract"); contract.present()) {
    auto address = evm::parse_address(contract.string(64));
    if (!address) contract.reject(address.error().code, address.error().message);
    check_contract(request, *address);
    scope.only = {std::move(*address)};
  } else if (const auto* allowed = request.principal()->restriction("contract")) {
    scope.only = *allowed;
  }
  if (scope.after) check_contract(request, scope.after->contract.address);
  return scope;
}

json::object to_json(const Difference& difference) {
  return {{"standard", kStandards.name(difference.key.standard)},
          {"chainId", difference.key.chain_id},
          {"contractAddress", difference.key.contract},
          {"flowId", difference.key.flow_id},
          {"generation", difference.generation},
          {"what", difference.what},
          {"stored", difference.stored},
          {"expected", difference.expected}};
}

json::object to_json(const NotChecked& one) {
  return {{"chainId", one.contract.chain_id},
          {"contractAddress", one.contract.address},
          {"flows", one.flows},
          {"reason", one.reason}};
}

json::object to_json(const VerifyAnswer& answer) {
  json::array differences;
  for (const auto& difference : answer.differences) differences.push_back(to_json(difference));
  json::array not_checked;
  for (const auto& one : answer.not_checked) not_checked.push_back(to_json(one));
  return {{"contracts", answer.contracts},
          {"flows", answer.flows},
          {"comparedWithContract", answer.compared},
          {"lagging", answer.lagging},
          {"differenceCount", answer.difference_count},
          {"differences", std::move(differences)},
          {"notChecked", std::move(not_checked)},
          {"nextCursor", answer.next ? json::value(verify_cursor_text(*answer.next)) : json::value(nullptr)}};
}

}  // namespace

awaitable<Response> verify_timelocks_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  check_operator(request);  // it reads everything and asks the chains
  auto scope = read_scope(request);
  if (parts.verifying->exchange(true)) {
    Error busy{ErrorKind::kRateLimited,
               "verify_running",
               "A verification is already running on this node: retry when it has ended.",
               {},
               {}};
    co_return Response::problem(std::move(busy).after(std::chrono::seconds(1)), request);
  }
  using Running = std::atomic<bool>;
  const std::unique_ptr<Running, decltype([](Running* running) { *running = false; })> until_done(
      parts.verifying.get());
  const auto answer = co_await verify(parts.service, std::move(scope), kVerifyBudget);
  co_return Response::json(200, to_json(answer));
}

}  // namespace fencepost::timelock
