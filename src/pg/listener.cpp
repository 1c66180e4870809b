#include "pg/listener.hpp"

#include <cassert>
#include <set>

#include <fmt/format.h>

#include "base/backoff.hpp"
#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kProofChannel = "fencepost_listen_proof";

constexpr Statement kHeartbeat{"listener_heartbeat", "SELECT 1"};
constexpr Statement kSendProof{"listener_send_proof", "SELECT pg_notify($1, $2)"};

// Quotes an identifier with '"', a text with '\''.
std::string in_marks(std::string_view text, char mark) {
  std::string out(1, mark);
  for (const char c : text) {
    if (c == mark) out += mark;
    out += c;
  }
  return out += mark;
}

}  // namespace

Listener::Listener(Executor executor, Connector& connector, const Options& options, Metrics& metrics)
    : executor_(executor),
      connector_(connector),
      options_(options),
      random_(SystemRandom().next()),
      tasks_(executor, "pg listener", 1),
      listening_(metrics.gauge("pg_listener_listening", "1 while LISTEN is known to work")),
      notifications_total_(metrics.counter("pg_notifications_total", "Notifications received")),
      sweeps_total_(metrics.counter("pg_listener_sweeps_total", "Times subscribers were asked to find work by query")),
      lost_total_(metrics.counter("pg_listener_lost_total", "Times the listening session was lost")) {}

void Listener::subscribe(std::string channel, OnNotify on_notify, OnSweep on_sweep) {
  subscribers_.push_back({std::move(channel), std::move(on_notify), std::move(on_sweep)});
}

void Listener::start() {
  [[maybe_unused]] const bool started = tasks_.spawn(options_.poll_only ? poll_forever() : listen_forever());
  assert(started);
}

awaitable<> Listener::stop() {
  co_await tasks_.stop(0ms);
}

awaitable<> Listener::poll_forever() {
  mode_ = Mode::kPolling;
  while (true) {
    sweep();
    co_await pause(options_.poll_interval);
  }
}

awaitable<> Listener::listen_forever() {
  Backoff backoff({.initial = 50ms, .cap = 5s}, random_);
  while (true) {
    std::optional<Error> failure;
    try {
      co_await serve();
    } catch (const boost::system::system_error& e) {
      if (e.code() == asio::error::operation_aborted) throw;  // stopped
      failure = error_of(std::current_exception());
    } catch (const std::exception&) {
      failure = error_of(std::current_exception());
    }
    if (mode_ != Mode::kConnecting) backoff.reset();
    mode_ = Mode::kConnecting;
    listening_.Set(0);
    lost_total_.Increment();
    const auto delay = backoff.next();
    log::warn("listener lost its session", *failure, {{"retryInMs", delay.count()}});
    co_await pause(delay);
  }
}

// Returns only by exception: ConnectionLost, or cancellation.
awaitable<> Listener::serve() {
  const auto closed = std::make_shared<Completion<std::string>>(executor_);
  auto session = co_await connector_.connect(executor_);
  const OwnedConnection connection(std::move(session),
                                   {.on_notify = [this](auto channel, auto payload) { hear(channel, payload); },
                                    .on_drained = {},
                                    .on_close = [closed](const std::string& reason) { closed->complete(reason); }});
  co_await connection->exec_script(listen_script(), options_.answer_timeout);
  const bool proven = co_await prove();
  if (proven) co_await connection->exec_script(name_script(), options_.answer_timeout);
  mode_ = proven ? Mode::kListening : Mode::kPolling;
  listening_.Set(proven ? 1 : 0);
  if (!proven) {
    log::error(
        "LISTEN does not work on this connection, so work is found by polling. Is the database behind a pooler in "
        "transaction mode? Point database.dsn at PostgreSQL itself.");
  }
  sweep();  // after LISTEN, so that no notification is missed in between

  const auto beat = proven ? options_.sweep_interval : options_.poll_interval;
  auto next_sweep = Clock::now() + beat;
  auto next_heartbeat = Clock::now() + options_.heartbeat;
  while (true) {
    if (co_await closed->wait(std::min(next_sweep, next_heartbeat))) throw ConnectionLost(closed->value());
    if (Clock::now() >= next_heartbeat) {
      Batch batch;
      batch.add(kHeartbeat);
      co_await connection->run(batch, {.access = Access::kRead, .timeout = options_.answer_timeout});
      next_heartbeat = Clock::now() + options_.heartbeat;
    }
    if (Clock::now() >= next_sweep) {
      sweep();
      next_sweep = Clock::now() + beat;
    }
  }
}

awaitable<bool> Listener::prove() {
  proof_ = fmt::format("{:016x}{:016x}", random_.next(), random_.next());
  proven_ = std::make_shared<Completion<bool>>(executor_);
  auto session = co_await connector_.connect(executor_);
  const OwnedConnection second(std::move(session), {});
  Batch batch;
  batch.add(kSendProof, kProofChannel, proof_);
  co_await second->run(batch, {.access = Access::kRead, .timeout = options_.answer_timeout});
  co_return co_await proven_->wait(Clock::now() + options_.answer_timeout);
}

awaitable<> Listener::pause(std::chrono::milliseconds delay) {
  asio::steady_timer timer(executor_, delay);
  co_await timer.async_wait(asio::use_awaitable);
}

void Listener::hear(std::string_view channel, std::string_view payload) {
  if (channel == kProofChannel) {
    if (payload == proof_) proven_->complete(true);
    return;
  }
  notifications_total_.Increment();
  for (const auto& subscriber : subscribers_) {
    if (subscriber.channel == channel && subscriber.on_notify) {
      tell(subscriber, [&] { subscriber.on_notify(payload); });
    }
  }
}

// An exception of one subscriber must not affect the others or the loop.
void Listener::tell(const Subscriber& subscriber, const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception&) {
    log::error("a notification subscriber failed", error_of(std::current_exception()),
               {{"channel", subscriber.channel}});
  }
}

void Listener::sweep() {
  sweeps_total_.Increment();
  for (const auto& subscriber : subscribers_) {
    if (subscriber.on_sweep) tell(subscriber, subscriber.on_sweep);
  }
}

std::string Listener::listen_script() const {
  auto script = fmt::format("LISTEN {};", in_marks(kProofChannel, '"'));
  for (const auto& subscriber : subscribers_) script += fmt::format("LISTEN {};", in_marks(subscriber.channel, '"'));
  return script;
}

std::string Listener::name_script() const {
  std::set<std::string> channels;  // in one order, whatever the order of the subscribers
  for (const auto& subscriber : subscribers_) channels.insert(subscriber.channel);
  std::string name(kSessionName);
  for (const auto& channel : channels) name += ' ' + channel;
  return fmt::format("SET application_name = {};", in_marks(name, '\''));
}

}  // namespace fencepost::pg
