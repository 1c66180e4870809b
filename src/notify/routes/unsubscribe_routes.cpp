#include "notify/model/unsubscribe_token.hpp"
#include "notify/page/unsubscribe_page.hpp"
#include "notify/routes/handlers.hpp"
#include "notify/store/subscription_store.hpp"

namespace fencepost::notify {
namespace {

using http::Request;
using http::Response;

Response page_answer(unsigned status, const Page& page) {
  return Response::text(status, html_of(page), "text/html; charset=utf-8")
      .with("Content-Language", page.language)
      .with("Vary", "Accept-Language")
      .with("Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
      .with("Referrer-Policy", "no-referrer")
      .with("Cache-Control", "no-store");
}

Language language_of(const Request& request) {
  return preferred_language(request.header("Accept-Language").value_or(""));
}

Response bad_link(const Request& request) {
  return page_answer(404, unsubscribe_bad_link(language_of(request)));
}

UnsubscribeSubject subject_of(const std::string& email, const Unsubscribe& what) {
  return {.email = email, .contract = what.contract, .chain_id = what.chain_id};
}

}  // namespace

// Only shows: programs that scan mails follow its links.
awaitable<Response> show_unsubscribe(Request& request, RoutesParts parts) {
  const auto what = read_unsubscribe_token(parts.mail.emails().secret(), request.param("token"));
  if (!what) co_return bad_link(request);
  const auto email = co_await address_of(parts.mail.pool(), what->email_id);
  if (!email) co_return bad_link(request);
  co_return page_answer(200, unsubscribe_question(subject_of(*email, *what), language_of(request)));
}

// By the button of the page, or by a mail program with one click (RFC 8058): no cookie and no Origin. The token is all
// that is needed, and repeating it changes nothing.
awaitable<Response> do_unsubscribe(Request& request, RoutesParts parts) {
  const auto what = read_unsubscribe_token(parts.mail.emails().secret(), request.param("token"));
  if (!what) co_return bad_link(request);
  const auto email = co_await address_of(parts.mail.pool(), what->email_id);
  if (!email) co_return bad_link(request);
  co_await unsubscribe(parts.mail.pool(), *what);
  co_return page_answer(200, unsubscribe_done(subject_of(*email, *what), language_of(request)));
}

}  // namespace fencepost::notify
