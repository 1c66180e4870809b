#include "notify/routes/routes.hpp"

#include "http/route_table.hpp"
#include "notify/routes/handlers.hpp"

namespace fencepost::notify {
namespace {

using http::Verb;

constexpr http::RouteRow<RoutesParts> kRoutes[] = {
    {Verb::kGet, "/api/v1/me", "wallet", get_me},
    {Verb::kPatch, "/api/v1/me", "wallet", change_me},
    {Verb::kPost, "/api/v1/me/emails", "wallet", add_email_route},
    {Verb::kGet, "/api/v1/me/emails", "wallet", get_emails},
    {Verb::kPatch, "/api/v1/me/emails/{emailId:id}", "wallet", change_email},
    {Verb::kDelete, "/api/v1/me/emails/{emailId:id}", "wallet", remove_email_route},
    {Verb::kPost, "/api/v1/me/emails/{emailId:id}/code", "wallet", send_code_again},
    {Verb::kPost, "/api/v1/me/emails/{emailId:id}/verify", "wallet", verify_email},
    {Verb::kPost, "/api/v1/me/subscriptions", "wallet", add_subscription_route},
    {Verb::kGet, "/api/v1/me/subscriptions", "wallet", get_subscriptions},
    {Verb::kGet, "/api/v1/me/subscriptions/{subscriptionId:id}", "wallet", get_subscription},
    {Verb::kPatch, "/api/v1/me/subscriptions/{subscriptionId:id}", "wallet", change_subscription_route},
    {Verb::kDelete, "/api/v1/me/subscriptions/{subscriptionId:id}", "wallet", remove_subscription_route},
    {Verb::kGet, "/unsubscribe/{token:secret}", "open", show_unsubscribe},
    {Verb::kPost, "/unsubscribe/{token:secret}", "open", do_unsubscribe},
    {Verb::kGet, "/api/v1/mails", "mail:read", get_mails},
    {Verb::kGet, "/api/v1/flows/{standard}/{chainId:id}/{contract}/{flowId}/mail", "timelock:read", preview_mail},
};

}  // namespace

void add_routes(http::Router& router, const RoutesParts& parts) {
  http::add_table<RoutesParts>(router, kRoutes, parts);
}

}  // namespace fencepost::notify
