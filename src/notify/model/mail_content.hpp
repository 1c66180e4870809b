// The words of all mails, in each language. Pure: no I/O.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "notify/model/flow_facts.hpp"
#include "notify/words/language.hpp"

namespace fencepost::notify {

struct MailContent {
  std::string subject;
  std::string text;
  std::string html;
};

struct FlowMailInput {
  FlowFacts flow;
  FlowTransition change;
  Language language = Language::kEnglish;
  std::string remark;           // of the one user whom the mail is for; empty: none, or several users share the address
  std::string chain_name;       // "chain 5" if it has no name
  std::string explorer_url;     // of the chain, such as https://etherscan.io; empty: no links
  std::string dashboard_url;    // of this flow; empty: no link
  std::string unsubscribe_url;  // a page; empty: no link
  TimePoint now;                // for "in 2 days"
};

// The HTML stays below 100,000 bytes, whatever the flow has: some mail programs cut off what is beyond. Throws
// std::logic_error for a status that FlowTransition does not list.
MailContent flow_mail(const FlowMailInput& input);

// The code stands on a line of its own, and is the only number of six digits in the text part.
MailContent code_mail(const std::string& code, std::chrono::milliseconds lifetime, Language language);

struct OperatorMailInput {
  std::string type;     // of the event: "TxStuck"
  std::string subject;  // of the event: "tx/0193…"
  TimePoint at;
  std::vector<std::pair<std::string, std::string>> facts;  // the event's data, one line each
  std::string advice;                                      // what to do next, one sentence; may be empty
};

// English only: operators read logs and metrics in English, too.
MailContent operator_mail(const OperatorMailInput& input);

}  // namespace fencepost::notify
