#include "pg/pool.hpp"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include <boost/asio/redirect_error.hpp>

#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr BackoffOptions kReconnect{.initial = 50ms, .cap = 5s};
constexpr BackoffOptions kRetry{.initial = 5ms, .cap = 250ms};

std::uint64_t seed() {
  return SystemRandom().next();
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

BorrowedConnection::~BorrowedConnection() {
  if (connection_) pool_->give_back(std::move(connection_));
}

awaitable<> Pool::Line::stand(std::chrono::milliseconds timeout) {
  const auto start = Clock::now();
  const auto ticket = std::make_shared<Completion<bool>>(executor_);
  const auto place = tickets_.insert(tickets_.end(), ticket);
  waiting_.Increment();
  // On every exit, also by cancellation, the caller leaves the queue. If it was admitted too late to use the
  // connection, the next caller is admitted instead.
  struct Leave {
    Line& line;
    std::list<Ticket>::iterator place;
    bool served = false;
    ~Leave() {
      const bool admitted = (*place)->done();
      line.waiting_.Decrement();
      line.tickets_.erase(place);
      if (admitted && !served) line.admit_one();
    }
  } leave{*this, place};
  const bool admitted = co_await ticket->wait(start + timeout);
  wait_time_.Observe(seconds_since(start));
  if (!admitted) {
    throw PoolExhausted(fmt::format("no database connection was free within {} ms", timeout.count()));
  }
  leave.served = true;
}

void Pool::Line::admit_one() {
  for (auto& ticket : tickets_) {
    if (!ticket->done()) return ticket->complete(true);
  }
}

Pool::Pool(Executor executor, Connector& connector, const PoolOptions& options, Metrics& metrics)
    : executor_(executor),
      connector_(connector),
      options_(options),
      metrics_(metrics),
      random_(seed()),
      keepers_(executor, "pg connections", options.shared_connections),
      shared_(options.shared_connections),
      shared_line_(
          executor, metrics.gauge("pg_pool_waiting", "Callers waiting for a connection", {{"kind", "shared"}}),
          metrics.latency("pg_pool_wait_seconds", "Time spent waiting for a connection", {{"kind", "shared"}})),
      exclusive_line_(
          executor, metrics.gauge("pg_pool_waiting", "Callers waiting for a connection", {{"kind", "exclusive"}}),
          metrics.latency("pg_pool_wait_seconds", "Time spent waiting for a connection", {{"kind", "exclusive"}})),
      drained_(executor),
      connected_total_(
          metrics.counter("pg_connections_total", "Sessions opened or lost, by event", {{"event", "opened"}})),
      lost_total_(metrics.counter("pg_connections_total", "Sessions opened or lost, by event", {{"event", "lost"}})),
      refused_total_(metrics.counter("pg_pool_refused_total", "Callers refused because the queue was full")),
      retried_total_(
          metrics.counter("pg_transactions_retried_total", "Retries after a deadlock or serialization failure")),
      lent_gauge_(metrics.gauge("pg_pool_lent", "Exclusive connections in use")) {}

Pool::~Pool() {
  assert(lent_ == 0 && "BorrowedConnection outlived its pool");
}

void Pool::start() {
  for (std::size_t slot = 0; slot < options_.shared_connections; ++slot) {
    [[maybe_unused]] const bool started = keepers_.spawn(keep_connected(slot));
    assert(started);
  }
}

awaitable<> Pool::stop(std::chrono::milliseconds grace) {
  stopping_ = true;
  const auto deadline = Clock::now() + grace;
  const auto busy = [this] {
    return lent_ > 0 || !shared_line_.empty() || !exclusive_line_.empty() ||
           std::ranges::any_of(shared_, [](const auto& c) { return c && c->in_flight() > 0; });
  };
  while (busy() && Clock::now() < deadline) {
    drained_.expires_at(deadline);
    co_await drained_.async_wait(use_tuple);
  }
  for (auto& connection : std::exchange(idle_, {})) connection->close("the pool is stopping");
  for (const auto& connection : shared_) {
    if (connection) connection->close("the pool is stopping");
  }
  co_await keepers_.stop(0ms);
}

bool Pool::connected() const {
  return std::ranges::any_of(shared_, [](const auto& c) { return c && c->is_open(); });
}

awaitable<std::vector<ResultSet>> Pool::run(Batch batch, RunOptions options) {
  if (batch.empty()) co_return std::vector<ResultSet>{};
  const auto start = Clock::now();
  auto& latency = latency_of(batch);
  Backoff backoff(kRetry, random_);
  bool reconnected = false;
  for (int attempt = 1;; ++attempt) {
    const auto connection = co_await shared_connection();
    try {
      auto results = co_await connection->run(batch, options);
      latency.Observe(seconds_since(start));
      co_return results;
    } catch (const QueryError& e) {
      if (!e.is_retryable() || attempt >= options_.max_attempts) throw;
      retried_total_.Increment();
    } catch (const ConnectionLost&) {
      if (options.access != Access::kRead || std::exchange(reconnected, true)) throw;
    }
    asio::steady_timer pause(executor_, backoff.next());
    co_await pause.async_wait(asio::use_awaitable);
  }
}

awaitable<ResultSet> Pool::run_one(Batch batch, Access access) {
  auto results = co_await run(std::move(batch), {.access = access});
  co_return std::move(results.front());
}

void Pool::refuse_if_full(const Line& line) {
  if (stopping_) throw PoolExhausted("the node is stopping");
  if (line.size() < options_.queue_limit) return;
  refused_total_.Increment();
  throw PoolExhausted(fmt::format("{} callers already wait for a database connection", line.size()));
}

std::shared_ptr<Connection> Pool::free_shared() {
  std::shared_ptr<Connection> best;
  for (const auto& connection : shared_) {
    if (!connection || !connection->is_open() || connection->in_flight() >= options_.max_in_flight) continue;
    if (!best || connection->in_flight() < best->in_flight()) best = connection;
  }
  return best;
}

awaitable<std::shared_ptr<Connection>> Pool::shared_connection() {
  if (stopping_) throw PoolExhausted("the node is stopping");
  const auto deadline = Clock::now() + options_.acquire_timeout;
  bool mine = shared_line_.empty();  // a new caller must not overtake waiting ones
  while (true) {
    if (mine) {
      if (auto connection = free_shared()) co_return connection;
    }
    refuse_if_full(shared_line_);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    co_await shared_line_.stand(std::max(left, 0ms));
    mine = true;
  }
}

awaitable<> Pool::keep_connected(std::size_t slot) {
  Backoff backoff(kReconnect, random_);
  while (!stopping_) {
    std::optional<Error> failure;
    try {
      const auto session = co_await connector_.connect(executor_);
      const auto closed = std::make_shared<Completion<std::string>>(executor_);
      // This coroutine owns the session, so a cancellation right after this line still closes it.
      const OwnedConnection connection(session,
                                       {.on_notify = {},
                                        .on_drained =
                                            [this] {
                                              shared_line_.admit_one();
                                              drained_.cancel();
                                            },
                                        .on_close = [closed](const std::string& reason) { closed->complete(reason); }});
      shared_[slot] = session;
      connected_total_.Increment();
      backoff.reset();
      for (std::size_t i = 0; i < options_.max_in_flight; ++i) shared_line_.admit_one();
      co_await closed->wait();
      shared_[slot].reset();
      if (stopping_) co_return;
      lost_total_.Increment();
      log::warn("database connection lost", {{"reason", closed->value()}});
    } catch (const ConnectionLost& e) {
      failure = e.error();
    }
    const auto pause = backoff.next();
    if (failure) log::warn("cannot connect to the database", *failure, {{"retryInMs", pause.count()}});
    asio::steady_timer timer(executor_, pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

awaitable<BorrowedConnection> Pool::acquire() {
  const auto deadline = Clock::now() + options_.acquire_timeout;
  bool mine = exclusive_line_.empty();
  while (!mine || lent_ >= options_.exclusive_connections) {
    refuse_if_full(exclusive_line_);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    co_await exclusive_line_.stand(std::max(left, 0ms));
    mine = true;
  }
  if (stopping_) throw PoolExhausted("the node is stopping");
  ++lent_;
  lent_gauge_.Increment();
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->is_open()) co_return BorrowedConnection(*this, std::move(connection));
  }
  std::exception_ptr failure;
  try {
    auto connection = co_await connector_.connect(executor_, deadline);
    connected_total_.Increment();
    connection->start({});
    co_return BorrowedConnection(*this, std::move(connection));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  give_back(nullptr);
  std::rethrow_exception(failure);
}

void Pool::give_back(std::shared_ptr<Connection> connection) {
  --lent_;
  lent_gauge_.Decrement();
  if (connection && !stopping_ && connection->is_clean()) {
    idle_.push_back(std::move(connection));
  } else if (connection) {
    connection->close("returned to the pool with an open transaction or answer, or while the pool stops");
  }
  exclusive_line_.admit_one();
  drained_.cancel();
}

Metrics::Summary& Pool::latency_of(const Batch& batch) {
  auto& slot = latencies_[batch.entries().front().statement];
  if (slot == nullptr) {
    slot = &metrics_.time_spent("pg_statement_duration_seconds",
                                "Time from the request for a batch to its answer, by first statement",
                                {{"statement", std::string(batch.name())}});
  }
  return *slot;
}

}  // namespace fencepost::pg
