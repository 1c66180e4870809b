#include "notify/page/unsubscribe_page.hpp"

#include "notify/words/words.hpp"

namespace fencepost::notify {
namespace {

Page plain_page(const Words& words, const Phrase& headline, std::vector<Line> paragraphs) {
  return {.language = words.language.text(),
          .colon = words.colon.text(),
          .title = headline.text(),
          .preheader = {},
          .badge = {},
          .headline = headline.text(),
          .code = {},
          .paragraphs = std::move(paragraphs),
          .actions = {},
          .form_button = {},
          .sections = {},
          .footer = {},
          .footer_actions = {}};
}

Line about(const Phrase& phrase, const UnsubscribeSubject& subject) {
  return fill(phrase, {mono(subject.email), mono(subject.contract), mono(std::to_string(subject.chain_id))});
}

}  // namespace

Page unsubscribe_question(const UnsubscribeSubject& subject, Language language) {
  const auto& all = words_of(language);
  const auto& say = all.unsubscribe;
  auto page = plain_page(all, say.ask_headline, {about(say.ask, subject), words(say.ask_note)});
  page.form_button = say.button.text();
  return page;
}

Page unsubscribe_done(const UnsubscribeSubject& subject, Language language) {
  const auto& all = words_of(language);
  const auto& say = all.unsubscribe;
  return plain_page(all, say.done_headline, {about(say.done, subject), words(say.done_note)});
}

Page unsubscribe_bad_link(Language language) {
  const auto& all = words_of(language);
  return plain_page(all, all.unsubscribe.bad_link_headline, {words(all.unsubscribe.bad_link)});
}

}  // namespace fencepost::notify
