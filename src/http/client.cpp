#include "http/client.hpp"

#include <algorithm>
#include <deque>
#include <list>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "http/client_connection.hpp"

namespace fencepost::http {

using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || (c != 0 && std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c)));
  });
}

bool is_value(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool has_header(const ClientRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers,
                             [&](const auto& header) { return equal_ignoring_case(header.first, name); });
}

Result<std::string> make_head(const ClientRequest& request, const detail::Endpoint& endpoint) {
  const auto bad = [](std::string message) {
    return fail(detail::sent_error(ErrorKind::kInvalid, "bad_header", std::move(message), false));
  };
  if (!is_token(request.method)) return bad("the method is not an HTTP token");
  std::string head;
  fmt::format_to(std::back_inserter(head), "{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, endpoint.target,
                 endpoint.host_header);
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return bad("a header's name is not an HTTP token");
    if (!is_value(value)) return bad(fmt::format("the value of {} has a line break or NUL", name));
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  }
  if (!endpoint.basic_credentials.empty() && !has_header(request, "Authorization")) {
    fmt::format_to(std::back_inserter(head), "Authorization: Basic {}\r\n", to_base64(endpoint.basic_credentials));
  }
  if (!has_header(request, "User-Agent")) head += "User-Agent: fencepost\r\n";
  const bool expects_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (expects_body || !request.body.empty()) {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", request.body.size());
  }
  head += "\r\n";
  return head;
}

}  // namespace

std::optional<std::string_view> ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

bool may_have_been_sent(const Error& error) {
  return std::ranges::find(error.context, std::pair<std::string, std::string>("sent", "no")) == error.context.end();
}

namespace detail {

// The connections to one origin. Each lease shares ownership, so a lease may outlive the client's map.
class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(Executor executor, const ClientOptions& options) : executor_(executor), options_(options) {}

  // One of the origin's connection slots, with an idle connection or none yet. The destructor returns both to the pool.
  class Lease {
   public:
    explicit Lease(std::shared_ptr<ConnectionPool> pool) : pool_(std::move(pool)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_) pool_->give_back(std::move(connection));
    }
    std::unique_ptr<ClientConnection> connection;

   private:
    std::shared_ptr<ConnectionPool> pool_;
  };

  // `fresh`: do not reuse an idle connection. Errors: client_busy, timeout.
  awaitable<Result<Lease>> acquire(bool fresh, SteadyTime deadline) {
    while (taken_ >= options_.max_connections_per_origin) {
      if (waiters_.size() >= options_.max_waiting_per_origin) {
        co_return fail(
            sent_error(ErrorKind::kUnavailable, "client_busy", "too many requests wait for a connection", false));
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        co_return fail(sent_error(ErrorKind::kTimeout, "timeout", "no connection became free in time", false));
      }
      co_await wait(deadline);
    }
    ++taken_;
    last_used_ = std::chrono::steady_clock::now();
    Lease lease(shared_from_this());
    if (!fresh) lease.connection = take_idle();
    co_return lease;
  }

  // No connection is in use, and no send waits for one.
  bool unused() const { return taken_ == 0 && waiters_.empty(); }
  SteadyTime last_used() const { return last_used_; }

 private:
  awaitable<> wait(SteadyTime deadline) {
    // Leaves the queue however the wait ends. Passes a wake-up that came too late on to the next waiter.
    struct Place {
      ConnectionPool& pool;
      std::list<asio::steady_timer>::iterator timer;
      ~Place() {
        pool.waiters_.erase(timer);
        pool.wake_one();
      }
    };
    waiters_.emplace_back(executor_, deadline);
    const Place place{*this, std::prev(waiters_.end())};
    co_await place.timer->async_wait(use_tuple);
  }

  void wake_one() {
    if (!waiters_.empty() && taken_ < options_.max_connections_per_origin) waiters_.front().cancel();
  }

  std::unique_ptr<ClientConnection> take_idle() {
    const auto oldest = std::chrono::steady_clock::now() - options_.idle_timeout;
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->idle_since > oldest && connection->looks_alive()) return connection;
    }
    return nullptr;
  }

  void give_back(std::unique_ptr<ClientConnection> connection) {
    --taken_;
    if (connection && connection->reusable() && options_.max_idle_per_origin > 0) {
      if (idle_.size() >= options_.max_idle_per_origin) idle_.pop_front();
      connection->idle_since = std::chrono::steady_clock::now();
      idle_.push_back(std::move(connection));
    }
    wake_one();
  }

  Executor executor_;
  const ClientOptions& options_;
  std::size_t taken_ = 0;
  SteadyTime last_used_ = std::chrono::steady_clock::now();
  std::deque<std::unique_ptr<ClientConnection>> idle_;
  std::list<asio::steady_timer> waiters_;
};

}  // namespace detail

Client::Client(Executor executor, ClientOptions options)
    : executor_(executor), options_(std::move(options)), tls_(std::make_unique<detail::TlsContext>(options_.ca_file)) {}

Client::~Client() = default;

awaitable<Result<ClientResponse>> Client::send(ClientRequest request) {
  const auto endpoint = detail::Endpoint::parse(request.url);
  if (!endpoint) co_return fail(endpoint.error());
  const auto head = make_head(request, *endpoint);
  if (!head) co_return fail(head.error());
  const auto deadline = std::chrono::steady_clock::now() + request.timeout.value_or(options_.total_timeout);
  bool stale = false;
  auto first = co_await try_once(request, *endpoint, *head, deadline, false, stale);
  // Retry only after a stale reused connection: the server closes idle connections, which is no failure to report.
  if (first || !stale) co_return first;
  if (!request.idempotent && may_have_been_sent(first.error())) co_return first;
  auto second = co_await try_once(request, *endpoint, *head, deadline, true, stale);
  // The first attempt may have reached the server even if the second one was not sent.
  if (!second && may_have_been_sent(first.error())) {
    for (auto& [key, value] : second.error().context) {
      if (key == "sent") value = "unknown";
    }
  }
  co_return second;
}

// Forgets the origins that have been unused for longest when there are too many; their idle connections are closed.
std::shared_ptr<detail::ConnectionPool> Client::pool_of(const std::string& origin) {
  if (const auto found = pools_.find(origin); found != pools_.end()) return found->second;
  while (pools_.size() >= options_.max_origins) {
    auto oldest = pools_.end();
    for (auto it = pools_.begin(); it != pools_.end(); ++it) {
      if (it->second->unused() && (oldest == pools_.end() || it->second->last_used() < oldest->second->last_used())) {
        oldest = it;
      }
    }
    if (oldest == pools_.end()) break;  // all are in use: as many as there are sends in flight
    pools_.erase(oldest);
  }
  return pools_.emplace(origin, std::make_shared<detail::ConnectionPool>(executor_, options_)).first->second;
}

// Sets `stale` when a reused connection broke before the first byte of the answer.
awaitable<Result<ClientResponse>> Client::try_once(const ClientRequest& request, const detail::Endpoint& endpoint,
                                                   std::string_view head, SteadyTime deadline, bool fresh,
                                                   bool& stale) {
  const auto pool = pool_of(endpoint.origin());
  auto lease = co_await pool->acquire(fresh, deadline);
  if (!lease) co_return fail(lease.error());
  const bool reused = lease->connection != nullptr;
  if (!reused) {
    lease->connection = std::make_unique<detail::ClientConnection>(executor_, endpoint, *tls_, options_);
    const auto until = std::min(deadline, std::chrono::steady_clock::now() + options_.connect_timeout);
    if (auto connected = co_await lease->connection->connect(endpoint, until); !connected) {
      co_return fail(std::move(connected.error()));
    }
    ++opened_;
  }
  bool broke_silently = false;
  auto response = co_await lease->connection->exchange(request, head, deadline, broke_silently);
  stale = reused && broke_silently;
  if (response) response->over_new_connection = !reused;
  co_return response;
}

}  // namespace fencepost::http
