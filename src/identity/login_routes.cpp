#include "identity/login_routes.hpp"

#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "http/errors.hpp"
#include "http/request_reader.hpp"
#include "http/route_table.hpp"
#include "identity/session_token.hpp"
#include "identity/siwe_message.hpp"

namespace fencepost::identity {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;
using http::Verb;

// A Safe's signature is one of 65 bytes, or more, for each of its owners.
constexpr std::size_t kMaxSignatureDigits = 20'000;
constexpr std::size_t kMaxKeyText = 200;

bool over_tls(const LoginRoutesParts& parts) {
  return parts.service.public_url().place().scheme == "https";
}

void check_origin(const Request& request, const LoginRoutesParts& parts, bool required) {
  if (is_own_origin(request, parts.service.public_url(), required)) return;
  throw Exception(http::forbidden("wrong_origin", "The request does not come from a page of this server.")
                      .with("expected", parts.service.public_url().place().origin()));
}

// Before the body is read. A page of another origin must not log its visitors in here: they would take the attacker's
// account for theirs.
void check_attempt(const Request& request, const LoginRoutesParts& parts) {
  http::check_query(request, {});
  if (const auto allowed = parts.service.may_try(request.remote()); !allowed) throw Exception(allowed.error());
  check_origin(request, parts, false);
}

Response begun(const NewSession& session, json::object body, const LoginRoutesParts& parts) {
  const auto lifetime = std::chrono::floor<std::chrono::seconds>(parts.service.options().session_lifetime);
  body["expiresAt"] = to_rfc3339(session.expires_at);
  return Response::json(200, body)
      .with("Set-Cookie", session_cookie(session.token, over_tls(parts), lifetime))
      .with("Cache-Control", "no-store");
}

awaitable<Response> get_nonce(Request& request, LoginRoutesParts parts) {
  http::check_query(request, {});
  const auto nonce = parts.service.nonce();
  if (!nonce) co_return Response::problem(nonce.error(), request);
  const auto place = parts.service.public_url().place();
  co_return Response::json(200, {{"nonce", nonce->text},
                                 {"expiresAt", to_rfc3339(nonce->expires_at)},
                                 {"domain", place.domain},
                                 {"uri", place.origin()}})
      .with("Cache-Control", "no-store");
}

awaitable<Response> verify(Request& request, LoginRoutesParts parts) {
  check_attempt(request, parts);
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"message", "signature"});
  auto message = in.field("message").string(2 * kSiweMaxBytes);
  const auto signature = from_hex0x(in.field("signature").string(kMaxSignatureDigits));
  if (!signature) in.field("signature").reject("bad_request", "expected bytes in hex with 0x");
  const auto session = co_await parts.service.log_in(message, *signature);
  if (!session) co_return Response::problem(session.error(), request);
  co_return begun(*session, {{"kind", "wallet"}, {"address", parse_siwe(message)->address}}, parts);
}

awaitable<Response> exchange_key(Request& request, LoginRoutesParts parts) {
  check_attempt(request, parts);
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"apiKey"});
  const auto key = http::read_text(in.field("apiKey"), kMaxKeyText);
  const auto session = co_await parts.service.exchange_key(key, request.remote());
  if (!session) co_return Response::problem(session.error(), request);
  co_return begun(*session, {{"kind", "key"}, {"address", nullptr}}, parts);
}

// Open, because a session that has ended must be able to lose its cookie, too: pages cannot delete it.
awaitable<Response> log_out(Request& request, LoginRoutesParts parts) {
  http::check_query(request, {"everywhere"});
  const auto everywhere = http::need(request.query_or<bool>("everywhere", false));
  check_origin(request, parts, true);
  const auto token_hash = presented_session(request, over_tls(parts));
  if (token_hash) co_await end_session(parts.service.pool(), *token_hash, everywhere);
  co_return Response::no_content().with("Set-Cookie", expired_cookie(over_tls(parts)));
}

awaitable<Response> get_me(Request& request, LoginRoutesParts parts) {
  http::check_query(request, {});
  const auto& caller = *request.principal();
  json::object out{{"kind", caller.user ? "wallet" : "key"},
                   {"id", caller.id},
                   {"label", caller.label},
                   {"address", nullptr},
                   {"scopes", json::array(caller.scopes.begin(), caller.scopes.end())},
                   {"expiresAt", nullptr}};
  if (caller.user) out["address"] = caller.label;
  const auto token_hash = presented_session(request, over_tls(parts));
  const bool by_session = token_hash && !KeyAuthenticator::presented(request);
  if (by_session) {
    const auto session = co_await find_session(parts.service.pool(), *token_hash, parts.service.options().session_idle);
    if (session) out["expiresAt"] = to_rfc3339(session->expires_at);
  }
  co_return Response::json(200, out).with("Cache-Control", "no-store");
}

constexpr http::RouteRow<LoginRoutesParts> kLoginRoutes[] = {
    {Verb::kGet, "/api/v1/auth/nonce", "open", get_nonce},    {Verb::kPost, "/api/v1/auth/verify", "open", verify},
    {Verb::kPost, "/api/v1/auth/key", "open", exchange_key},  {Verb::kPost, "/api/v1/auth/logout", "open", log_out},
    {Verb::kGet, "/api/v1/auth/me", "key_or_wallet", get_me},
};

}  // namespace

void add_login_routes(http::Router& router, const LoginRoutesParts& parts) {
  http::add_table<LoginRoutesParts>(router, kLoginRoutes, parts);
}

}  // namespace fencepost::identity
