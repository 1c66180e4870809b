// The mail parts of a node on a real database, with a transport and flows that the test controls.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "notify/notify_test_support.hpp"
#include "notify/service/address_service.hpp"
#include "notify/service/email_service.hpp"
#include "notify/service/flow_source.hpp"
#include "notify/workers/mail_sender.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::notify {

// Remembers each mail and answers as the test says. Any thread may call.
class StubTransport final : public MailTransport {
 public:
  using Answer = std::function<SendOutcome(const Mail&)>;
  struct Attempt {
    Mail mail;
    std::chrono::steady_clock::time_point at;
  };

  explicit StubTransport(std::size_t connections = 1) : connections_(connections) {}

  awaitable<SendOutcome> send(Mail mail, Time = Time::max()) override {
    note(mail);
    asio::steady_timer timer(co_await this_executor());
    while (stuck) {
      timer.expires_after(2ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    const std::lock_guard lock(mutex_);
    co_return answer_(mail);
  }
  std::size_t connections() const override { return connections_; }
  std::string_view name() const override { return "stub"; }

  void answer_with(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  std::vector<Attempt> attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  std::vector<std::string> message_ids() const {
    std::vector<std::string> out;
    for (const auto& attempt : attempts()) out.push_back(attempt.mail.message_id);
    return out;
  }

  std::atomic<bool> stuck = false;  // sending does not end

 private:
  void note(const Mail& mail) {
    const std::lock_guard lock(mutex_);
    attempts_.push_back({mail, std::chrono::steady_clock::now()});
  }

  const std::size_t connections_;
  mutable std::mutex mutex_;
  std::vector<Attempt> attempts_;
  Answer answer_ = [](const Mail&) { return SendOutcome{.result = SendResult::kSent, .detail = ""}; };
};

// Knows the flows that the test gives it, and counts the questions.
class StubFlows final : public FlowSource {
 public:
  awaitable<std::optional<FlowFacts>> find_flow(FlowRef ref) override {
    ++asked;
    if (broken.contains(ref)) throw Exception(internal("bad_column", "the row is damaged"));
    const auto found = flows.find(ref);
    co_return found == flows.end() ? std::nullopt : std::optional(found->second);
  }
  awaitable<std::optional<WatchedContract>> find_contract(std::int64_t, std::string) override {
    co_return std::nullopt;
  }

  std::map<FlowRef, FlowFacts> flows;
  std::set<FlowRef> broken;  // asking for these throws
  std::atomic<int> asked = 0;
};

struct MailNode {
  MailNode(const std::string& dsn, const EmailOptions& options, std::unique_ptr<Random> chosen_random = nullptr,
           std::size_t connections = 1)
      : transport(connections),
        random(chosen_random ? std::move(chosen_random) : std::make_unique<SystemRandom>()),
        database(runtime, test::connect_options(dsn), {.exclusive_connections = 8}, metrics),
        emails({&transport, public_url, clock, {}}, options),
        addresses({database, *random, emails, [] {}}, options),
        sender({runtime, database, emails, flows, metrics}) {
    runtime.start();
    runtime.run_on(0, database.start());
    run([this]() -> awaitable<> { co_await emails.prepare(database.pool()); });
  }
  ~MailNode() {
    stop();
    runtime.run_on(0, database.stop(1s));
    runtime.stop();
  }
  MailNode(const MailNode&) = delete;
  MailNode& operator=(const MailNode&) = delete;

  // Runs the coroutine that `make` returns on loop 0, and waits for it.
  template <class Make>
  typename std::invoke_result_t<Make&>::value_type run(Make make) {
    return runtime.run_on(0, [](Make& body) -> std::invoke_result_t<Make&> { co_return co_await body(); }(make));
  }
  void start() {
    run([this]() -> awaitable<> {
      sender.start();
      co_return;
    });
    sends = true;
  }
  void stop() {
    if (std::exchange(sends, false)) runtime.run_on(0, sender.stop(10s));
  }

  StubTransport transport;
  StubFlows flows;
  SystemClock clock;
  std::unique_ptr<Random> random;
  identity::PublicUrl public_url{"https://fencepost.example.org"};
  Metrics metrics;
  Runtime runtime{{.threads = 1}};
  pg::Database database;
  EmailService emails;
  AddressService addresses;
  MailSender sender;
  bool sends = false;
};

inline EmailOptions mail_options() {
  EmailOptions options;
  options.transport = TransportKind::kFile;
  options.from = "fencepost@example.org";
  return options;
}

}  // namespace fencepost::notify
