#include "notify/page/flow_page.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.hpp"
#include "notify/page/call_sections.hpp"
#include "notify/page/explorer_links.hpp"
#include "notify/page/safe_text.hpp"
#include "notify/words/time_text.hpp"
#include "notify/words/words.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kSubjectNameCharacters = 60;
constexpr std::size_t kNameOfContractCharacters = 200;
constexpr std::size_t kChainCharacters = 40;
constexpr std::size_t kRemarkCharacters = 500;

FlowStatus status_named(std::string_view name) {
  const auto status = kFlowStatuses.find(name);
  if (!status) throw std::logic_error(fmt::format("unknown status of a flow: {}", quote(name)));
  return *status;
}

Tone tone_of(FlowStatus status) {
  switch (status) {
    case FlowStatus::kWaiting:
      return Tone::kInfo;
    case FlowStatus::kReady:
      return Tone::kAction;
    case FlowStatus::kExecuted:
      return Tone::kGood;
    case FlowStatus::kCancelled:
      return Tone::kNeutral;
    case FlowStatus::kExpired:
      return Tone::kBad;
  }
  return Tone::kNeutral;
}

std::string standard_text(std::string_view standard) {
  if (standard == "compound") return "Compound";
  if (standard == "openzeppelin") return "OpenZeppelin";
  return shortened(standard, kChainCharacters);
}

// Builds the page of one mail: holds what all its parts need.
class FlowPage {
 public:
  explicit FlowPage(const FlowMailInput& input)
      : in_(input),
        flow_(input.flow),
        change_(input.change),
        all_(words_of(input.language)),
        words_(all_.flow),
        to_(status_named(input.change.to)),
        to_words_(to_ == FlowStatus::kReady && flow_.blocked_by ? words_.blocked : words_of(words_, to_)),
        links_(input.explorer_url) {}

  Page page() const {
    Page out{.language = all_.language.text(),
             .colon = all_.colon.text(),
             .title = subject(),
             .preheader = preheader(),
             .badge = badge(),
             .headline = (change_.correction ? words_.undone_headline : to_words_.headline).text(),
             .code = {},
             .paragraphs = paragraphs(),
             .actions = actions(),
             .form_button = {},
             .sections = {operation()},
             .footer = {fill(words_.why, {links_.address(flow_.ref.contract), words(chain())})},
             .footer_actions = {{words_.unsubscribe.text(), in_.unsubscribe_url}}};
    auto calls = call_sections(flow_.calls, all_.call, links_);
    std::ranges::move(calls, std::back_inserter(out.sections));
    out.sections.push_back(details());
    return out;
  }

  std::string subject() const {
    const auto what =
        change_.correction ? fill_text(words_.undone_subject, {to_words_.name}) : to_words_.subject.text();
    const auto name = shortened(flow_.contract_name, kSubjectNameCharacters);
    return fill_text(name.empty() ? words_.subject_unnamed : words_.subject_named,
                     {what, name, short_hex(flow_.ref.contract), chain()});
  }

 private:
  // Whether the flow is over, as far as this change says: it will not become ready or expire any more.
  bool over() const { return !change_.correction && (to_ == FlowStatus::kExecuted || to_ == FlowStatus::kCancelled); }

  std::string chain() const {
    const auto number = std::to_string(flow_.ref.chain_id);
    const bool unnamed = in_.chain_name.empty() || in_.chain_name == "chain " + number;
    return unnamed ? fill_text(words_.unnamed_chain, {number}) : shortened(in_.chain_name, kChainCharacters);
  }

  std::string moment(TimePoint time) const { return moment_text(time, in_.now, all_.time); }

  Badge badge() const {
    if (change_.correction) return {words_.undone_badge.text(), Tone::kUndone};
    return {to_words_.name.text(), tone_of(to_)};
  }

  std::vector<Line> paragraphs() const {
    if (!change_.correction) return {words(to_words_.meaning)};
    return {fill(words_.undone_intro, {strong(to_words_.name)}), words(to_words_.undone), words(words_.undone_outlook)};
  }

  std::string preheader() const {
    if (change_.correction) return to_words_.undone.text();
    if (to_ == FlowStatus::kWaiting && flow_.due_at) {
      return fmt::format("{}{}{}", words_.ready_at.text(), all_.colon.text(), moment(*flow_.due_at));
    }
    return to_words_.meaning.text();
  }

  std::vector<Action> actions() const {
    return {{words_.open_dashboard.text(), in_.dashboard_url},
            {words_.view_transaction.text(), links_.transaction_url(change_.tx_hash.value_or(""))}};
  }

  Section operation() const {
    Section out{.heading = words_.operation.text(), .rows = {}, .notes = {}};
    add_place(out.rows);
    add_status(out.rows);
    add_times(out.rows);
    if (!flow_.initiator.empty()) out.rows.push_back({words_.initiator.text(), links_.address(flow_.initiator)});
    if (flow_.via) out.rows.push_back({words_.via.text(), links_.address(*flow_.via)});
    return out;
  }

  Section details() const {
    Section out{.heading = words_.details.text(), .rows = {}, .notes = {}};
    if (change_.tx_hash) out.rows.push_back({words_.transaction.text(), links_.transaction(*change_.tx_hash)});
    if (!flow_.queue_tx_hash.empty() && flow_.queue_tx_hash != change_.tx_hash) {
      out.rows.push_back({words_.queue_transaction.text(), links_.transaction(flow_.queue_tx_hash)});
    }
    out.rows.push_back({words_.operation_id.text(), mono(flow_.ref.flow_id)});
    out.rows.push_back({words_.standard.text(), words(standard_text(flow_.ref.standard))});
    return out;
  }

  void add_place(std::vector<Row>& rows) const {
    const auto name = shortened(flow_.contract_name, kNameOfContractCharacters);
    if (!name.empty()) rows.push_back({words_.timelock.text(), strong(name)});
    rows.push_back({(name.empty() ? words_.timelock : words_.address).text(), links_.address(flow_.ref.contract)});
    const auto remark = shortened(in_.remark, kRemarkCharacters);
    if (!remark.empty()) rows.push_back({words_.remark.text(), words(remark)});
    const auto number = std::to_string(flow_.ref.chain_id);
    const bool named = chain() != fill_text(words_.unnamed_chain, {number});
    rows.push_back({words_.chain.text(), words(named ? fill_text(words_.named_chain, {chain(), number}) : chain())});
  }

  void add_status(std::vector<Row>& rows) const {
    auto text = change_.from ? fill_text(words_.status_change,
                                         {words_of(words_, status_named(*change_.from)).name, to_words_.name})
                             : fill_text(words_.status_new, {to_words_.name});
    if (change_.correction) text = fill_text(words_.status_undone, {text});
    rows.push_back({words_.status.text(), strong(text)});
    // The chain's clock makes a flow ready or expired at a time that has its own row.
    if (change_.changed_at == flow_.due_at || change_.changed_at == flow_.expires_at) return;
    rows.push_back({words_.changed_at.text(), words(moment(change_.changed_at))});
  }

  void add_times(std::vector<Row>& rows) const {
    if (flow_.due_at) {
      rows.push_back({words_.ready_at.text(), words(moment(*flow_.due_at))});
    } else if (!over()) {
      rows.push_back({words_.ready_at.text(), words(words_.no_ready_at)});
    }
    if (flow_.expires_at && !over()) {
      const auto& label = *flow_.expires_at < in_.now ? words_.expired_at : words_.expires_at;
      rows.push_back({label.text(), words(moment(*flow_.expires_at))});
    }
    if (flow_.blocked_by)
      rows.push_back({words_.blocked_by.text(), fill(words_.not_before, {mono(*flow_.blocked_by)})});
  }

  const FlowMailInput& in_;
  const FlowFacts& flow_;
  const FlowTransition& change_;
  const Words& all_;
  const FlowWords& words_;
  FlowStatus to_;
  const StatusWords& to_words_;
  ExplorerLinks links_;
};

}  // namespace

Page flow_page(const FlowMailInput& input) {
  return FlowPage(input).page();
}

std::string flow_subject(const FlowMailInput& input) {
  return FlowPage(input).subject();
}

}  // namespace fencepost::notify
