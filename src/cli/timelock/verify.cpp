#include "cli/timelock/verify.hpp"

#include <map>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/verbs.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostListed = 10'000;  // in --json; all are counted

struct TimelockVerifyFlags {
  ApiFlags api;
  ChainId chain_id;
  std::string contract;
  bool json = false;
};

std::string difference_text(const json::value& difference) {
  FactList facts;
  facts.add("differs", text_at(difference, "what"));
  facts.add("  contract",
            fmt::format("{} on chain {}", text_at(difference, "contractAddress"), text_at(difference, "chainId")));
  facts.add("  flow",
            fmt::format("{} generation {}", text_at(difference, "flowId"), text_at(difference, "generation")));
  facts.add("  stored", text_at(difference, "stored"));
  facts.add("  expected", text_at(difference, "expected"));
  return facts.text();
}

class VerifyRun {
 public:
  VerifyRun(const PollWorld& world, json::object body, bool as_json)
      : world_(world), body_(std::move(body)), as_json_(as_json) {}

  Result<int> run() {
    const auto done = poll_until(world_, std::nullopt, [this] { return page(); });
    if (!done) return fail(done.error());
    world_.print(as_json_ ? json::serialize(summary()) + "\n" : text());
    if (found_ > 0) return kExitFailedForGood;
    return not_checked_.empty() ? kExitDone : kExitUnavailable;
  }

 private:
  // True: it was the last page. Reads only, so a page whose answer was lost is asked for again.
  Result<bool> page() {
    const auto answer = world_.api.post("/api/v1/timelocks/verify", body_, true);
    if (!answer) return fail(answer.error());
    for (const auto* name : {"contracts", "flows", "comparedWithContract", "lagging"}) {
      counts_[name] += int_at(*answer, name).value_or(0);
    }
    found_ += int_at(*answer, "differenceCount").value_or(0);
    for (const auto& difference : list(*answer, "differences")) show(difference);
    for (const auto& one : list(*answer, "notChecked")) {
      if (not_checked_.size() < kMostListed) not_checked_.push_back(one);
    }
    const auto cursor = text_at(*answer, "nextCursor");
    if (cursor.empty()) return true;
    body_["cursor"] = cursor;
    return false;
  }

  static json::array list(const json::value& answer, std::string_view name) {
    const auto* found = find_at(answer, name);
    return found != nullptr && found->is_array() ? found->get_array() : json::array();
  }

  void show(const json::value& difference) {
    if (!as_json_) {
      world_.print(difference_text(difference) + "\n");
    } else if (differences_.size() < kMostListed) {
      differences_.push_back(difference);
    }
  }

  json::object summary() {
    json::object out;
    for (const auto& [name, count] : counts_) out[name] = count;
    out["differenceCount"] = found_;
    out["differences"] = std::move(differences_);
    out["notChecked"] = not_checked_;
    return out;
  }

  std::string text() {
    std::string out;
    for (const auto& one : not_checked_) {
      out += fmt::format("not checked: {} flows of {} on chain {}: {}\n", text_at(one, "flows"),
                         printable(text_at(one, "contractAddress")), text_at(one, "chainId"),
                         printable(text_at(one, "reason")));
    }
    return out + fmt::format("{} flows of {} contracts checked, {} against their contract: {} differences\n",
                             counts_["flows"], counts_["contracts"], counts_["comparedWithContract"], found_);
  }

  const PollWorld& world_;
  json::object body_;
  bool as_json_;
  std::map<std::string, std::int64_t> counts_;
  std::int64_t found_ = 0;
  json::array differences_;
  json::array not_checked_;
};

int verify_timelocks(const TimelockVerifyFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  json::object scope;
  if (flags.chain_id) scope["chainId"] = *flags.chain_id;
  if (!flags.contract.empty()) scope["contract"] = flags.contract;
  const auto world = terminal_world(*api);
  const auto code = verify_flows(world, std::move(scope), flags.json);
  return code ? *code : report(code.error());
}

}  // namespace

Result<int> verify_flows(const PollWorld& world, json::object scope, bool as_json) {
  return VerifyRun(world, std::move(scope), as_json).run();
}

void add_timelock_verify(CLI::App& timelock, Run& run) {
  const auto [command, flags] = add_verb<TimelockVerifyFlags>(
      timelock, run, "verify",
      "Compare flows with their events and with the contracts (exit code 0: equal, 3: differences, 6: not all could be "
      "checked)",
      verify_timelocks);
  command.add_option("--chain", flags->chain_id, "Only contracts on this chain");
  command.add_option("--contract", flags->contract, "Only this contract");
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace fencepost::cli
