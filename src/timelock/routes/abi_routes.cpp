#include <array>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "evm/abi/abi_json.hpp"
#include "evm/address.hpp"
#include "http/list_answer.hpp"
#include "timelock/routes/handlers.hpp"
#include "timelock/store/abi_store.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::size_t kMaxAbiName = 200;
constexpr std::size_t kMaxAbiAddress = 64;

json::object abi_json(const AbiView& abi) {
  return {{"id", abi.id.to_string()},
          {"name", abi.name},
          {"chainId", optional_json(abi.chain_id)},
          {"address", optional_json(abi.address)},
          {"functions", abi.functions},
          {"createdBy", abi.created_by},
          {"createdAt", to_rfc3339(abi.created_at)}};
}

// An entry of an unknown type is a mistake, not something to skip.
void check_entries(const JsonReader& abi) {
  constexpr std::array<std::string_view, 6> kTypes{"function", "event", "error", "constructor", "fallback", "receive"};
  const auto list = abi.value().is_object() ? abi.field("abi") : abi;
  for (const auto& entry : list.array(evm::kAbiJsonMaxEntries)) {
    if (const auto type = entry.field("type"); type.present()) type.index_of(kTypes);
  }
}

NewAbi read_new_abi(const JsonReader& in) {
  in.reject_unknown({"name", "abi", "chainId", "address"});
  NewAbi abi;
  abi.name = http::read_text(in.field("name"), kMaxAbiName);
  if (abi.name.empty()) in.field("name").reject("bad_request", "expected 1 to 200 characters");
  if (const auto chain = in.field("chainId"); chain.present()) abi.chain_id = chain.int64(1);
  if (const auto address = in.field("address"); address.present()) {
    auto parsed = evm::parse_address(address.string(kMaxAbiAddress));
    if (!parsed) address.reject(parsed.error().code, parsed.error().message);
    abi.address = std::move(*parsed);
  }
  check_entries(in.field("abi"));
  abi.functions = evm::read_abi(in.field("abi"));
  if (abi.functions.empty()) in.field("abi").reject("bad_request", "expected at least one function");
  abi.json = json::serialize(in.field("abi").value());
  return abi;
}

// How calls are explained concerns every reader of flows: a key that is limited to contracts may only add what explains
// calls to these.
void check_abi_target(const Request& request, const std::optional<std::string>& address) {
  if (request.principal()->restriction("contract") != nullptr) check_contract(request, address.value_or(""));
}

}  // namespace

awaitable<Response> add_abi(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  auto abi = read_new_abi(JsonReader(body));
  check_abi_target(request, abi.address);
  abi.id = parts.ids.next();
  abi.created_by = request.principal()->audit_name();
  const auto added = co_await insert_abi(parts.service.pool(), std::move(abi));
  if (!added) {
    co_return Response::problem(conflict("too_many_abis", "There are 1,000 ABIs already: remove one first."), request);
  }
  co_return Response::json(201, abi_json(*added)).with("Location", "/api/v1/abis/" + added->id.to_string());
}

awaitable<Response> get_abis(Request& request, RoutesParts parts) {
  check_operator(request);
  http::check_query(request, {"cursor", "limit"});
  const auto limit = http::read_limit(request);
  std::optional<Uuid> after;
  if (const auto cursor = request.query("cursor")) {
    const auto id = Uuid::parse(*cursor);
    if (!id) http::refuse_parameter("cursor", "a nextCursor of this list", *cursor);
    after = *id;
  }
  const auto abis = co_await list_abis(parts.service.pool(), after, limit + 1);
  co_return http::page_answer(abis, limit, abi_json, [](const AbiView& abi) { return abi.id.to_string(); });
}

awaitable<Response> remove_abi_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto id = request.param_uuid("abiId");
  const auto found = co_await find_abi(parts.service.pool(), id);
  if (found) check_abi_target(request, found->address);
  if (!found || !co_await remove_abi(parts.service.pool(), id)) {
    co_return Response::problem(not_found("no_such_abi", "There is no ABI with this id."), request);
  }
  co_return Response::no_content();
}

}  // namespace fencepost::timelock
