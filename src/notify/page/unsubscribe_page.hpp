// The pages behind the unsubscribe link of a mail. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "notify/page/page.hpp"
#include "notify/words/language.hpp"

namespace fencepost::notify {

struct UnsubscribeSubject {
  std::string email;
  std::string contract;
  std::int64_t chain_id = 0;
};

// Has the button that unsubscribes.
Page unsubscribe_question(const UnsubscribeSubject& subject, Language language);
Page unsubscribe_done(const UnsubscribeSubject& subject, Language language);
Page unsubscribe_bad_link(Language language);

}  // namespace fencepost::notify
