#include "notify/model/mail_content.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "notify/page/flow_page.hpp"
#include "notify/page/page.hpp"
#include "notify/page/safe_text.hpp"
#include "notify/words/time_text.hpp"
#include "notify/words/words.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kSubjectCharacters = 150;
constexpr std::size_t kFactsShown = 50;
constexpr std::size_t kFactNameCharacters = 100;
constexpr std::size_t kFactCharacters = 800;

MailContent rendered(std::string subject, const Page& page) {
  return {.subject = std::move(subject), .text = text_of(page), .html = html_of(page)};
}

Section facts_section(const OperatorMailInput& input) {
  Section out{.heading = "Facts", .rows = {}, .notes = {}};
  out.rows.push_back({"Event", strong(input.type)});
  out.rows.push_back({"Subject", mono(input.subject)});
  out.rows.push_back({"Time", words(utc_text(input.at))});
  const auto shown = std::min(input.facts.size(), kFactsShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [name, value] = input.facts[i];
    out.rows.push_back({shortened(name, kFactNameCharacters), mono(shortened(value, kFactCharacters))});
  }
  if (const auto hidden = input.facts.size() - shown; hidden > 0) {
    out.notes.push_back(words(fmt::format("{} more facts are not shown here.", hidden)));
  }
  return out;
}

}  // namespace

MailContent flow_mail(const FlowMailInput& input) {
  return rendered(flow_subject(input), flow_page(input));
}

MailContent code_mail(const std::string& code, std::chrono::milliseconds lifetime, Language language) {
  const auto& all = words_of(language);
  const auto& say = all.code;
  const auto span = span_text(std::chrono::floor<std::chrono::seconds>(lifetime), all.time);
  const Page page{.language = all.language.text(),
                  .colon = all.colon.text(),
                  .title = say.subject.text(),
                  .preheader = say.enter.text(),
                  .badge = {},
                  .headline = say.headline.text(),
                  .code = code,
                  .paragraphs = {words(say.enter), fill(say.lifetime, {strong(span)}), words(say.secret)},
                  .actions = {},
                  .form_button = {},
                  .sections = {},
                  .footer = {words(say.not_you)},
                  .footer_actions = {}};
  return rendered(say.subject.text(), page);
}

MailContent operator_mail(const OperatorMailInput& input) {
  const auto subject = shortened(fmt::format("[Fencepost] {}: {}", input.type, input.subject), kSubjectCharacters);
  Page page{.language = "en",
            .colon = ": ",
            .title = subject,
            .preheader = input.advice,
            .badge = {.text = "For operators", .tone = Tone::kAction},
            .headline = shortened(input.type, kSubjectCharacters),
            .code = {},
            .paragraphs = {},
            .actions = {},
            .form_button = {},
            .sections = {facts_section(input)},
            .footer = {words("You get this mail because this address is one of the operators of a Fencepost node.")},
            .footer_actions = {}};
  if (!input.advice.empty()) page.paragraphs.push_back(words(input.advice));
  return rendered(subject, page);
}

}  // namespace fencepost::notify
