// Drives several PostgreSQL sessions statement by statement, in an order that the test chooses.
//
//   Theatre theatre(db.dsn());
//   Session a(db.dsn(), "node-a"), b(db.dsn(), "node-b");
//   for (const auto& order : all_orders({4, 2})) theatre.play({{a, writer()}, {b, taker()}}, order);
//
// A turn sends one statement and waits until the server has answered it, or until the statement waits for a lock. Then
// the other sessions continue, and the waiting session catches up as soon as it gets the lock. Nothing here depends on
// time: the server is asked whether a session waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <poll.h>

#include "base/error.hpp"
#include "pg/batch.hpp"
#include "pg/connection.hpp"
#include "pg/params.hpp"
#include "pg/result.hpp"

namespace fencepost::interleaving {

inline constexpr std::chrono::seconds kPatience{20};

// The server's answer to one statement.
struct Answer {
  pg::ResultSet rows;
  std::string sqlstate;  // empty: the statement succeeded
  std::string message;

  bool ok() const { return sqlstate.empty(); }
};

// One connection. Call `send`, then `take` once `finished` is true.
class Session {
 public:
  Session(const std::string& dsn, const std::string& application_name)
      : connection_(PQconnectdb((dsn + "&application_name=" + application_name).c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      throw Exception(unavailable("test_session", PQerrorMessage(connection_.get())));
    }
  }

  int pid() const { return PQbackendPID(connection_.get()); }

  void send(std::string_view sql, const pg::Params& params = {}) {
    params.to_wire(wire_);
    const auto& name = prepare(std::string(sql));
    if (PQsendQueryPrepared(connection_.get(), name.c_str(), static_cast<int>(params.size()), wire_.values.data(),
                            wire_.lengths.data(), wire_.formats.data(), 0) != 1) {
      throw Exception(internal("test_session", PQerrorMessage(connection_.get())));
    }
  }

  // Whether the server has ended the session.
  bool lost() {
    const pg::ResultSet reply(PQexec(connection_.get(), "SELECT 1"));
    return PQstatus(connection_.get()) == CONNECTION_BAD;
  }

  // True if `take` would not wait. Gives the server up to `pause` to answer.
  bool finished(std::chrono::milliseconds pause = std::chrono::milliseconds(0)) {
    if (PQisBusy(connection_.get()) == 0) return true;
    pollfd socket{PQsocket(connection_.get()), POLLIN, 0};
    ::poll(&socket, 1, static_cast<int>(pause.count()));
    // A terminated session is finished, too: its last answer says so.
    return PQconsumeInput(connection_.get()) != 1 || PQisBusy(connection_.get()) == 0;
  }

  Answer take() {
    Answer answer;
    while (auto* raw = PQgetResult(connection_.get())) {
      pg::ResultSet rows(raw);
      if (PQresultStatus(raw) == PGRES_FATAL_ERROR) {
        const auto* state = PQresultErrorField(raw, PG_DIAG_SQLSTATE);
        answer.sqlstate = state == nullptr ? "lost" : state;
        answer.message = PQresultErrorMessage(raw);
      }
      answer.rows = std::move(rows);
    }
    return answer;
  }

  Answer ask(std::string_view sql, const pg::Params& params = {}) {
    send(sql, params);
    return take();
  }
  Answer ask(const pg::Statement& statement, const pg::Params& params) { return ask(statement.sql, params); }

  // Runs SQL that must not fail. Throws if it does.
  pg::ResultSet must(std::string_view sql, const pg::Params& params = {}) {
    auto answer = ask(sql, params);
    if (!answer.ok()) throw Exception(internal("test_session", fmt::format("{}: {}", answer.message, sql)));
    return std::move(answer.rows);
  }
  template <class T>
  T value(std::string_view sql, const pg::Params& params = {}) {
    return must(sql, params).one().get<T>(0);
  }

 private:
  // Prepares as Connection does, so that the plans are the same.
  const std::string& prepare(const std::string& sql) {
    const auto [place, is_new] = prepared_.try_emplace(sql, fmt::format("s{}", prepared_.size()));
    if (is_new) {
      const pg::ResultSet reply(PQprepare(connection_.get(), place->second.c_str(), sql.c_str(),
                                          static_cast<int>(wire_.types.size()), wire_.types.data()));
      if (const std::string message = PQerrorMessage(connection_.get()); !message.empty()) {
        prepared_.erase(place);
        throw Exception(internal("test_session", fmt::format("{}: {}", message, sql)));
      }
    }
    return place->second;
  }

  pg::PgConn connection_;
  pg::Params::Wire wire_;
  std::map<std::string, std::string> prepared_;
};

// One statement of a script. `then` handles its answer; without `then` the statement must succeed.
struct Turn {
  std::string name;
  std::function<void(Session&)> start;
  std::function<void(Answer)> then;
};
using Script = std::vector<Turn>;

inline Turn statement(std::string_view name, std::string_view sql, pg::Params params = {},
                      std::function<void(Answer)> then = {}) {
  return {std::string(name),
          [text = std::string(sql), params = std::move(params)](Session& session) { session.send(text, params); },
          std::move(then)};
}

// The first statement of a transaction. BEGIN takes no lock and no snapshot, so it is not a turn of its own.
inline Turn opening(Turn turn) {
  turn.start = [first = std::move(turn.start)](Session& session) {
    session.must("BEGIN");
    first(session);
  };
  return turn;
}

inline Turn commit(std::function<void()> then = {}) {
  return statement("commit", "COMMIT", {}, [then = std::move(then)](const Answer& answer) {
    EXPECT_TRUE(answer.ok()) << answer.message;
    if (then) then();
  });
}

// The statements of a batch as one transaction, as in Connection::run. `then` gets the answer to the last statement.
inline Script script_of(const pg::Batch& batch, std::function<void(Answer)> then = {}) {
  Script script;
  for (const auto& entry : batch.entries()) {
    script.push_back(statement(entry.statement->name, entry.statement->sql, entry.params));
  }
  script.back().then = std::move(then);
  script.front() = opening(std::move(script.front()));
  script.push_back(commit());
  return script;
}

struct Part {
  Session& session;
  Script script;
};

using Order = std::vector<std::size_t>;  // the index of the part that takes each turn

// All orders in which scripts of these lengths can be interleaved.
inline std::vector<Order> all_orders(const std::vector<std::size_t>& lengths) {
  Order order;
  for (std::size_t part = 0; part < lengths.size(); ++part) order.insert(order.end(), lengths[part], part);
  std::vector<Order> orders;
  do orders.push_back(order);
  while (std::ranges::next_permutation(order).found);
  return orders;
}
inline std::vector<Order> all_orders(const std::vector<Script>& scripts) {
  std::vector<std::size_t> lengths;
  lengths.reserve(scripts.size());
  for (const auto& script : scripts) lengths.push_back(script.size());
  return all_orders(lengths);
}

class Theatre {
 public:
  explicit Theatre(const std::string& dsn) : observer_(dsn, "observer") {}

  // Plays all scripts to their ends. Afterwards `trace` says what happened, including waits.
  void play(std::vector<Part> parts, const Order& order) {
    trace_.clear();
    std::vector<Actor> actors;
    actors.reserve(parts.size());
    for (auto& part : parts) actors.emplace_back(part);
    for (const auto whose : order) {
      ++actors[whose].owed;
      go_on(actors);
    }
    for (auto& actor : actors) actor.owed = actor.left();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::ranges::any_of(actors, [](const Actor& a) { return a.left() > 0 || a.waiting; })) {
      go_on(actors);
      if (std::chrono::steady_clock::now() > deadline) {
        throw Exception(internal("stalemate", "no session can continue:" + trace_));
      }
    }
  }

  const std::string& trace() const { return trace_; }

  // True if the session's statement is answered, false if it waits for another session's lock.
  bool settled(Session& session) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      if (session.finished(std::chrono::milliseconds(1))) return true;
      if (waits(session.pid())) return session.finished();
      if (std::chrono::steady_clock::now() > deadline) {
        throw Exception(internal("stalemate", "a statement neither ends nor waits:" + trace_));
      }
    }
  }

  bool waits(int pid) {
    return observer_.value<bool>("SELECT cardinality(pg_blocking_pids($1)) > 0", pg::Params::of(std::int64_t{pid}));
  }

 private:
  struct Actor {
    explicit Actor(Part& p) : part(&p) {}
    std::size_t left() const { return part->script.size() - next; }

    Part* part;
    std::size_t next = 0;
    std::size_t owed = 0;  // due turns, including those from before the session began to wait
    bool waiting = false;
  };

  void go_on(std::vector<Actor>& actors) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < actors.size(); ++i) {
        auto& actor = actors[i];
        if (actor.waiting && settled(actor.part->session)) {
          finish(actor);
          moved = true;
        }
        while (actor.owed > 0 && !actor.waiting) {
          take_turn(actor, i);
          moved = true;
        }
      }
    }
  }

  void take_turn(Actor& actor, std::size_t index) {
    const auto& turn = actor.part->script[actor.next++];
    --actor.owed;
    trace_ += fmt::format(" {}:{}", static_cast<char>('A' + index), turn.name);
    turn.start(actor.part->session);
    actor.waiting = true;
    if (settled(actor.part->session)) return finish(actor);
    trace_ += "(waits)";
  }

  void finish(Actor& actor) {
    actor.waiting = false;
    const auto& turn = actor.part->script[actor.next - 1];
    auto answer = actor.part->session.take();
    if (turn.then) return turn.then(std::move(answer));
    EXPECT_TRUE(answer.ok()) << turn.name << ": " << answer.message << trace_;
  }

  Session observer_;
  std::string trace_;
};

}  // namespace fencepost::interleaving
