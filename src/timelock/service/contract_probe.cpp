#include "timelock/service/contract_probe.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "evm/abi/abi.hpp"
#include "evm/address.hpp"
#include "evm/keccak.hpp"
#include "http/errors.hpp"

namespace fencepost::timelock {
namespace {

// The functions that tell the standards apart, and those that the rules are read from.
enum Question { kDelay, kGrace, kAdmin, kPendingAdmin, kMinDelay, kTimestamp, kIsAdmin, kIsOldAdmin, kQuestions };

constexpr std::size_t kMaxShown = 200;  // bytes of one answer in an error; a contract may answer with megabytes

constexpr std::array<std::string_view, kQuestions> kNames{"delay()",
                                                          "GRACE_PERIOD()",
                                                          "admin()",
                                                          "pendingAdmin()",
                                                          "getMinDelay()",
                                                          "getTimestamp(bytes32)",
                                                          "hasRole(bytes32,address)",
                                                          "hasRole(bytes32,address)"};

// The role that administers the others was TIMELOCK_ADMIN_ROLE until 4.9, and is the default one since 5.0.
std::string data_for(Question question, const evm::Address& self) {
  evm::AbiWriter writer(evm::selector(kNames[question]));
  if (question == kTimestamp) writer.bytes32({});
  if (question == kIsAdmin) writer.bytes32({}).address(self);
  if (question == kIsOldAdmin) writer.bytes32(evm::keccak256("TIMELOCK_ADMIN_ROLE")).address(self);
  return to_hex0x(writer.take());
}

class Answers {
 public:
  explicit Answers(std::vector<Result<Bytes>> answers) : answers_(std::move(answers)) {}

  // Contracts answer a call of an unknown function with nothing, or revert. Anything else must be one word.
  std::optional<Uint256> number(Question question) const {
    const auto& answer = answers_[question];
    if (!answer || answer->size() != 32) return std::nullopt;
    return evm::AbiReader(*answer).uint256(0).value();
  }
  std::optional<std::string> address(Question question) const {
    const auto& answer = answers_[question];
    if (!answer || answer->size() != 32) return std::nullopt;
    const auto read = evm::AbiReader(*answer).address(0);
    if (!read) return std::nullopt;
    return evm::address_text(*read);
  }
  // An error of the chain, not of the contract.
  const Error* failure() const {
    for (const auto& answer : answers_) {
      if (!answer && answer.error().code != "would_revert") return &answer.error();
    }
    return nullptr;
  }
  std::string text(Question question) const {
    const auto& answer = answers_[question];
    if (!answer) return "reverted";
    if (answer->empty()) return "nothing";
    return plain_text(to_hex0x(std::span(*answer).first(std::min(answer->size(), kMaxShown))), kMaxShown);
  }

  bool compound() const { return number(kDelay) && number(kGrace) && address(kAdmin); }
  bool openzeppelin() const { return number(kMinDelay) && number(kTimestamp); }

 private:
  std::vector<Result<Bytes>> answers_;
};

Probe as_compound(const Answers& answers) {
  ContractRules rules{.delay = *answers.number(kDelay),
                      .grace = answers.number(kGrace),
                      .admin = answers.address(kAdmin),
                      .pending = answers.address(kPendingAdmin)};
  if (rules.pending && *rules.pending == evm::address_text(evm::Address{})) rules.pending.reset();
  return {Standard::kCompound, std::move(rules)};
}

// A controller has no list of its admins. The usual one administers itself, which can be asked for.
Probe as_openzeppelin(const Answers& answers, const std::string& self) {
  ContractRules rules{.delay = *answers.number(kMinDelay), .grace = {}, .admin = {}, .pending = {}};
  const bool own = answers.number(kIsAdmin) == Uint256(1) || answers.number(kIsOldAdmin) == Uint256(1);
  if (own) rules.admin = self;
  return {Standard::kOpenZeppelin, std::move(rules)};
}

Error not_a_timelock(const Answers& answers, std::optional<Standard> expected) {
  std::string tried;
  for (const auto question : {kDelay, kGrace, kAdmin, kMinDelay, kTimestamp}) {
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : ", ", kNames[question], answers.text(question));
  }
  auto message = expected
                     ? fmt::format("The contract does not answer as a timelock of {} does.", kStandards.name(*expected))
                     : std::string(
                           "The contract answers neither as Compound's Timelock nor as OpenZeppelin's "
                           "TimelockController.");
  return http::unprocessable("not_a_timelock", std::move(message)).with("tried", std::move(tried));
}

// Those of the right chain, those in use before those in cooldown.
std::vector<std::size_t> endpoints_of(const evm::ChainConnector& chain) {
  std::vector<std::size_t> out;
  for (const bool cooling : {false, true}) {
    for (std::size_t i = 0; i < chain.endpoint_count(); ++i) {
      const auto status = chain.endpoint_status(i);
      if (!status.wrong_chain && status.cooling_until.has_value() == cooling) out.push_back(i);
    }
  }
  return out;
}

Error behind(std::int64_t head, std::int64_t newest) {
  return unavailable("endpoint_behind",
                     "The endpoint does not have the newest block, so it cannot say what is at this address: retry "
                     "later.")
      .with("head", std::to_string(head))
      .with("block", std::to_string(newest));
}

Error no_endpoint() {
  return unavailable("rpc_unavailable", "Every endpoint is on another chain.");
}

awaitable<Result<Probe>> probe_at(evm::ChainConnector& chain, const std::string& address,
                                  std::optional<Standard> expected, std::size_t endpoint) {
  const auto code = co_await chain.code(address, {}, endpoint);
  if (!code) co_return fail(code.error());
  if (code->empty()) {
    co_return fail(
        http::unprocessable("not_a_contract", fmt::format("There is no contract at {} on this chain.", address)));
  }
  const auto self = evm::address_bytes(address);
  std::vector<evm::CallRequest> calls;
  calls.reserve(kQuestions);
  for (int i = 0; i < kQuestions; ++i) {
    calls.push_back(
        {.from = "", .to = address, .value = {}, .data = data_for(static_cast<Question>(i), self), .gas = {}});
  }
  const Answers answers(co_await chain.calls(std::move(calls), {}, endpoint));
  if (const auto* failure = answers.failure()) co_return fail(*failure);
  const bool compound = answers.compound() && expected != Standard::kOpenZeppelin;
  const bool openzeppelin = answers.openzeppelin() && expected != Standard::kCompound;
  if (compound && openzeppelin) {
    co_return fail(
        http::unprocessable("ambiguous_timelock", "The contract answers as both standards do: give `standard`."));
  }
  auto probe = compound ? std::optional(as_compound(answers)) : std::nullopt;
  if (openzeppelin) probe = as_openzeppelin(answers, address);
  if (!probe) co_return fail(not_a_timelock(answers, expected));
  probe->endpoint = endpoint;
  co_return std::move(*probe);
}

awaitable<Result<std::optional<std::int64_t>>> deployment_block_at(evm::ChainConnector& chain,
                                                                   const std::string& address, std::int64_t head,
                                                                   std::size_t endpoint) {
  std::int64_t without = -1;  // the contract did not exist then
  std::int64_t with = head;
  while (with - without > 1) {
    const auto middle = without + (with - without) / 2;
    const auto code = co_await chain.code(address, middle, endpoint);
    const bool away = !code && code.error().kind == ErrorKind::kUnavailable && code.error().code != "bad_rpc_result";
    if (away) co_return fail(code.error());
    if (!code) co_return std::nullopt;  // the node has no state of that block
    (code->empty() ? without : with) = middle;
  }
  co_return with;
}

}  // namespace

bool is_refusal(const Error& error) {
  return error.code == "not_a_contract" || error.code == "not_a_timelock" || error.code == "ambiguous_timelock";
}

awaitable<Result<Probe>> probe_contract(evm::ChainConnector& chain, ProbeRequest request) {
  std::optional<Error> absent, failure;
  auto newest = request.known_head;
  for (const auto endpoint : endpoints_of(chain)) {
    const auto head = co_await chain.head_number(endpoint);
    if (!head || (request.fresh && head->number < newest)) {
      failure = head ? behind(head->number, newest) : head.error();
      continue;
    }
    auto probe = co_await probe_at(chain, request.address, request.expected, endpoint);
    if (probe || (is_refusal(probe.error()) && probe.error().code != "not_a_contract")) co_return probe;
    if (!is_refusal(probe.error())) {
      failure = probe.error();
    } else if (head->number < newest) {
      failure = behind(head->number, newest);
    } else {
      newest = head->number;
      absent = probe.error();
    }
  }
  if (absent) co_return fail(*absent);
  co_return fail(failure ? *failure : no_endpoint());
}

awaitable<Result<std::optional<std::int64_t>>> deployment_block(evm::ChainConnector& chain, std::string address,
                                                                std::int64_t head) {
  std::optional<Error> failure;
  bool without_state = false;
  for (const auto endpoint : endpoints_of(chain)) {
    const auto reached = co_await chain.head_number(endpoint);
    if (!reached) failure = reached.error();
    if (!reached || reached->number < head) continue;
    auto block = co_await deployment_block_at(chain, address, head, endpoint);
    if (block && *block) co_return block;
    if (block) without_state = true;
    if (!block) failure = block.error();
  }
  if (without_state) co_return std::nullopt;
  co_return fail(failure ? *failure : no_endpoint());
}

}  // namespace fencepost::timelock
