#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "notify/routes/handlers.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::size_t kMaxEmailText = 400;  // bytes; a longer one is refused before it is looked at
constexpr std::size_t kMaxRemark = 200;
constexpr std::size_t kMaxCodeText = 64;

json::object email_json(const UserEmail& email) {
  return {{"id", std::to_string(email.id)},
          {"email", email.email},
          {"remark", optional_json(email.remark)},
          {"isVerified", email.is_verified},
          {"lastVerifiedAt", time_or_null(email.last_verified_at)},
          {"isDeliverable", email.is_deliverable},
          {"createdAt", to_rfc3339(email.created_at)}};
}

std::optional<std::string> read_remark(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  return http::read_text(in, kMaxRemark);
}

awaitable<Response> me_answer(Request& request, RoutesParts parts) {
  const auto language = co_await language_of(parts.mail.pool(), user_of(request));
  co_return private_answer(200, {{"address", request.principal()->label}, {"language", language}});
}

}  // namespace

awaitable<Response> get_me(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  co_return co_await me_answer(request, parts);
}

awaitable<Response> change_me(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"language"});
  const auto names = kLanguages.names();
  const auto language = names[in.field("language").index_of(names)];
  co_await set_language(parts.mail.pool(), user_of(request), std::string(language));
  co_return co_await me_answer(request, parts);
}

awaitable<Response> add_email_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"email", "remark"});
  auto email = in.field("email").string(kMaxEmailText);
  auto remark = read_remark(in.field("remark"));
  const auto added = co_await parts.mail.addresses().add(user_of(request), std::move(email), std::move(remark));
  if (!added) co_return Response::problem(added.error(), request);
  co_return private_answer(added->is_new ? 201 : 200, email_json(added->email));
}

awaitable<Response> get_emails(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  json::array items;
  for (const auto& email : co_await list_emails(parts.mail.pool(), user_of(request)))
    items.push_back(email_json(email));
  co_return http::list_answer(std::move(items)).with("Cache-Control", "no-store");
}

awaitable<Response> change_email(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"remark"});
  const auto remark = in.field("remark");
  if (!remark.present() && !remark.is_null()) remark.reject("bad_request", "is required");
  const auto changed =
      co_await parts.mail.addresses().change_remark(user_of(request), request.param_id("emailId"), read_remark(remark));
  if (!changed) co_return Response::problem(changed.error(), request);
  co_return private_answer(200, email_json(*changed));
}

awaitable<Response> remove_email_route(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto removed = co_await parts.mail.addresses().remove(user_of(request), request.param_id("emailId"));
  if (!removed) co_return Response::problem(removed.error(), request);
  co_return Response::no_content();
}

awaitable<Response> send_code_again(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto id = request.param_id("emailId");
  const auto sent = co_await parts.mail.addresses().send_code(user_of(request), id);
  if (!sent) co_return Response::problem(sent.error(), request);
  const auto email = co_await find_email(parts.mail.pool(), user_of(request), id);
  if (!email) co_return Response::no_content();  // removed meanwhile
  co_return private_answer(202, email_json(*email));
}

awaitable<Response> verify_email(Request& request, RoutesParts parts) {
  http::check_query(request, {});
  const auto body = http::read_body(request);
  const JsonReader in(body);
  in.reject_unknown({"code"});
  auto code = in.field("code").string(kMaxCodeText);
  const auto verified =
      co_await parts.mail.addresses().verify(user_of(request), request.param_id("emailId"), std::move(code));
  if (!verified) co_return Response::problem(verified.error(), request);
  co_return private_answer(200, email_json(*verified));
}

}  // namespace fencepost::notify
