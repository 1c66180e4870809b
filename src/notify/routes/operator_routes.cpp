#include <algorithm>

#include <boost/json/object.hpp>

#include "base/contains.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "evm/address.hpp"
#include "http/errors.hpp"
#include "http/list_answer.hpp"
#include "notify/model/mail_address.hpp"
#include "notify/routes/handlers.hpp"
#include "notify/store/mail_log_store.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;
using http::need;
using http::Request;
using http::Response;

json::object mail_json(const LoggedMail& mail) {
  return {{"id", std::to_string(mail.id)},
          {"email", mail.email},
          {"standard", mail.ref.standard},
          {"chainId", mail.ref.chain_id},
          {"contractAddress", mail.ref.contract},
          {"flowId", mail.ref.flow_id},
          {"generation", mail.ref.generation},
          {"kind", mail.change.correction ? "correction" : "change"},
          {"statusFrom", optional_json(mail.change.from)},
          {"statusTo", mail.change.to},
          {"sendStatus", kSendStatus.name(mail.status)},
          {"retryCount", mail.retries},
          {"error", optional_json(mail.error)},
          {"createdAt", to_rfc3339(mail.created_at)},
          {"sentAt", time_or_null(mail.sent_at)}};
}

// Throws kForbidden `contract_not_allowed`.
void check_contract(const Request& request, const std::string& contract) {
  if (request.principal()->allows("contract", contract)) return;
  throw Exception(http::forbidden("contract_not_allowed", "The caller may not use this contract."));
}

// A caller that is limited to contracts sees the mails about those, and asks for no other.
MailLogFilter read_filter(const Request& request) {
  MailLogFilter out;
  if (const auto status = request.query("status")) {
    out.status = kSendStatus.find(*status);
    if (!out.status) http::refuse_parameter("status", "pending, success, failed, dead or suppressed", *status);
  }
  if (const auto email = request.query("email")) out.email = need(normalize_mail_address(*email));
  if (const auto contract = request.query("contract")) {
    out.contracts = std::vector{need(evm::parse_address(*contract))};
    check_contract(request, out.contracts->front());
  } else if (const auto* allowed = request.principal()->restriction("contract")) {
    out.contracts = *allowed;
  }
  out.before = http::read_id_cursor(request);
  return out;
}

FlowRef ref_of_path(const Request& request) {
  FlowRef ref{.standard = std::string(request.param("standard")),
              .chain_id = http::positive_param(request, "chainId"),
              .contract = need(evm::parse_address(request.param("contract"))),
              .flow_id = lowercase(request.param("flowId")),
              .generation = 0};
  if (const auto generation = need(request.query_as<std::int32_t>("generation"))) {
    if (*generation < 1) http::refuse_parameter("generation", "a number from 1", std::to_string(*generation));
    ref.generation = *generation;
  }
  if (ref.standard != "compound" && ref.standard != "openzeppelin") {
    http::refuse_parameter("standard", "compound or openzeppelin", ref.standard);
  }
  if (!request.param("flowId").starts_with("0x") || !is_hash32(ref.flow_id))
    http::refuse_parameter("flowId", "0x and 64 hexadecimal digits", ref.flow_id);
  return ref;
}

// The status that came before, in the life of a flow that nothing unusual happened to.
std::optional<std::string> usual_from(std::string_view status) {
  if (status == "waiting") return std::nullopt;
  return status == "ready" || status == "cancelled" ? "waiting" : "ready";
}

FlowTransition read_transition(const Request& request, const Clock& clock) {
  const auto status = std::string(request.query("status").value_or("waiting"));
  if (!contains(kNotifyStatuses, status)) {
    http::refuse_parameter("status", "waiting, ready, executed, cancelled or expired", status);
  }
  return {.from = usual_from(status),
          .to = status,
          .correction = need(request.query_or<bool>("correction", false)),
          .tx_hash = {},
          .changed_at = clock.now()};
}

// As far as the flow knows when and by which transaction the change was made.
void complete(FlowTransition& change, const FlowFacts& flow) {
  if (change.to == "waiting") {
    change.tx_hash = flow.queue_tx_hash;
    change.changed_at = flow.queued_at.value_or(change.changed_at);
  }
  if (change.to == "ready" && flow.due_at) change.changed_at = *flow.due_at;
}

Language language_in(const Request& request) {
  const auto name = request.query("language").value_or("en");
  const auto language = kLanguages.find(name);
  if (!language) http::refuse_parameter("language", "en or zh", name);
  return *language;
}

}  // namespace

awaitable<Response> get_mails(Request& request, RoutesParts parts) {
  http::check_query(request, {"status", "email", "contract", "cursor", "limit"});
  const auto limit = http::read_limit(request);
  const auto mails = co_await list_mails(parts.mail.pool(), read_filter(request), limit + 1);
  co_return http::page_answer(mails, limit, mail_json, [](const LoggedMail& mail) { return std::to_string(mail.id); });
}

awaitable<Response> preview_mail(Request& request, RoutesParts parts) {
  http::check_query(request, {"generation", "status", "correction", "language", "format"});
  const auto ref = ref_of_path(request);
  check_contract(request, ref.contract);
  const auto format = request.query("format").value_or("html");
  if (format != "html" && format != "text") http::refuse_parameter("format", "html or text", format);
  const auto language = language_in(request);
  auto change = read_transition(request, parts.mail.clock());
  const auto flow = co_await parts.mail.flows().find_flow(ref);
  if (!flow) co_return Response::problem(not_found("no_such_flow", "There is no such flow."), request);
  complete(change, *flow);
  const auto content = parts.mail.emails().preview(*flow, change, language);
  // As it is shown: what a mail program blocks is blocked here, too.
  const auto answer = [&](std::string body, std::string type) {
    return Response::text(200, std::move(body), std::move(type))
        .with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        .with("Cache-Control", "no-store");
  };
  if (format == "text") co_return answer(content.text, "text/plain; charset=utf-8");
  co_return answer(content.html, "text/html; charset=utf-8");
}

}  // namespace fencepost::notify
