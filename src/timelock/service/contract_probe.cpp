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

}  // namespace

awaitable<Result<Probe>> probe_contract(evm::ChainConnector& chain, std::string address,
                                        std::optional<Standard> expected) {
  const auto code = co_await chain.code(address);
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
  const Answers answers(co_await chain.calls(std::move(calls)));
  if (const auto* failure = answers.failure()) co_return fail(*failure);
  const bool compound = answers.compound() && expected != Standard::kOpenZeppelin;
  const bool openzeppelin = answers.openzeppelin() && expected != Standard::kCompound;
  if (compound && openzeppelin) {
    co_return fail(
        http::unprocessable("ambiguous_timelock", "The contract answers as both standards do: give `standard`."));
  }
  if (compound) co_return as_compound(answers);
  if (openzeppelin) co_return as_openzeppelin(answers, address);
  co_return fail(not_a_timelock(answers, expected));
}

awaitable<Result<std::optional<std::int64_t>>> deployment_block(evm::ChainConnector& chain, std::string address,
                                                                std::int64_t head) {
  std::int64_t without = -1;  // the contract did not exist then
  std::int64_t with = head;
  while (with - without > 1) {
    const auto middle = without + (with - without) / 2;
    const auto code = co_await chain.code(address, middle);
    const bool away = !code && code.error().kind == ErrorKind::kUnavailable && code.error().code != "bad_rpc_result";
    if (away) co_return fail(code.error());
    if (!code) co_return std::nullopt;  // the node has no state of that block
    (code->empty() ? without : with) = middle;
  }
  co_return with;
}

}  // namespace fencepost::timelock
