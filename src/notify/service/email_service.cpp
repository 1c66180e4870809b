#include "notify/service/email_service.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/digest.hpp"
#include "base/hex.hpp"
#include "identity/login_store.hpp"
#include "notify/model/mail_address.hpp"
#include "notify/model/unsubscribe_token.hpp"
#include "notify/model/verification_code.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;

constexpr std::size_t kMarkDigits = 16;

Language language_named(std::string_view name) {
  return kLanguages.find(name).value_or(Language::kEnglish);
}

std::string_view advice_for(std::string_view event) {
  if (event == "TxStuck") {
    return "Look at the transaction with `fencepost tx show`; then rebroadcast, cancel or wait (docs/api.md).";
  }
  if (event == "TimelockVerifyFailed") {
    return "Run `fencepost timelock verify` and compare the flow with the chain before anyone relies on it.";
  }
  return "";
}

OperatorMailInput operator_input(const OperatorMail& mail) {
  OperatorMailInput input{.type = mail.type,
                          .subject = mail.subject,
                          .at = mail.at,
                          .facts = {},
                          .advice = std::string(advice_for(mail.type))};
  const auto data = json::parse(mail.data);
  for (const auto& [name, value] : data.as_object()) {
    if (value.is_null()) continue;
    input.facts.emplace_back(name, value.is_string() ? std::string(value.as_string()) : json::serialize(value));
  }
  return input;
}

}  // namespace

EmailService::EmailService(Parts parts, const EmailOptions& options) : parts_(std::move(parts)), options_(options) {}

awaitable<> EmailService::prepare(pg::Pool& pool) {
  auto read = std::make_shared<const Secret>(co_await identity::installation_secret(pool));
  // Only the first time: `secret()` hands out references, and a second store would free what they refer to.
  std::shared_ptr<const Secret> none;
  secret_.compare_exchange_strong(none, std::move(read));
}

const Secret& EmailService::secret() const {
  const auto secret = secret_.load();
  if (!secret)
    throw Exception(unavailable("not_ready", "The node is starting: try again.").after(std::chrono::seconds(1)));
  return *secret;  // set once: it lives as long as this object
}

// The same for every attempt, and for no mail of another installation.
Mail EmailService::mail_of(std::string_view kind, const MailRow& row, MailContent content) const {
  const auto mark =
      hmac_sha256_hex(secret().reveal(), fmt::format("message id {} {}", kind, row.id)).substr(0, kMarkDigits);
  return {.message_id = fmt::format("{}-{}.{}@{}", kind, row.id, mark, domain_of(options_.from)),
          .from = options_.from,
          .to = row.address,
          .subject = std::move(content.subject),
          .text = std::move(content.text),
          .html = std::move(content.html),
          .unsubscribe_url = {},
          .date = row.created_at};
}

std::string EmailService::flow_url(const FlowRef& ref) const {
  if (options_.dashboard_url.empty()) return "";
  return fmt::format("{}/flows/{}/{}/{}/{}", options_.dashboard_url, ref.standard, ref.chain_id, ref.contract,
                     ref.flow_id);
}

FlowMailInput EmailService::input_of(const FlowFacts& flow, const FlowTransition& change, Language language) const {
  const auto chain = parts_.chains.find(flow.ref.chain_id);
  const bool known = chain != parts_.chains.end();
  return {.flow = flow,
          .change = change,
          .language = language,
          .remark = {},
          .chain_name = known ? chain->second.name : fmt::format("chain {}", flow.ref.chain_id),
          .explorer_url = known ? chain->second.explorer_url : "",
          .dashboard_url = flow_url(flow.ref),
          .unsubscribe_url = {},
          .now = parts_.clock.now()};
}

awaitable<SendOutcome> EmailService::hand_over(Mail mail, MailTransport::Time start_by) {
  std::string reason;
  try {
    co_return co_await parts_.transport->send(std::move(mail), start_by);
  } catch (const Exception& e) {
    if (e.error().code != "bad_mail") throw;
    reason = e.error().message;
  }
  co_return SendOutcome{
      .result = SendResult::kRefused, .detail = std::move(reason), .brief = "the mail cannot be written"};
}

awaitable<SendOutcome> EmailService::send_code(const CodeMail& mail, MailTransport::Time start_by) {
  const auto salt = from_hex(mail.salt.value());
  const std::string_view bytes(reinterpret_cast<const char*>(salt->data()), salt->size());
  const auto code = notify::code_of(secret(), bytes);
  auto content = code_mail(code, options_.code_ttl, language_named(mail.language));
  co_return co_await hand_over(mail_of("code", mail.row, std::move(content)), start_by);
}

awaitable<SendOutcome> EmailService::send_flow_notification(const FlowMail& mail, const std::vector<Reader>& readers,
                                                            const FlowFacts& flow, MailTransport::Time start_by) {
  const auto& first = readers.at(0);
  const bool one_language =
      std::ranges::all_of(readers, [&](const Reader& reader) { return reader.language == first.language; });
  auto input = input_of(flow, mail.change, one_language ? language_named(first.language) : Language::kEnglish);
  if (readers.size() == 1) input.remark = first.remark.value_or("");
  const auto token = unsubscribe_token(secret(), {mail.email_id, mail.ref.chain_id, mail.ref.contract});
  input.unsubscribe_url = fmt::format("{}/unsubscribe/{}", parts_.public_url.place().origin(), token);
  auto out = mail_of("flow", mail.row, flow_mail(input));
  out.unsubscribe_url = input.unsubscribe_url;
  co_return co_await hand_over(std::move(out), start_by);
}

awaitable<SendOutcome> EmailService::send_operator_report(const OperatorMail& mail, MailTransport::Time start_by) {
  auto content = operator_mail(operator_input(mail));
  co_return co_await hand_over(mail_of("report", mail.row, std::move(content)), start_by);
}

MailContent EmailService::preview(const FlowFacts& flow, const FlowTransition& change, Language language) const {
  return flow_mail(input_of(flow, change, language));
}

}  // namespace fencepost::notify
