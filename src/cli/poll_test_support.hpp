// For tests of what polls the API: answers in a given order, and a clock that only sleeping moves.
#pragma once

#include <chrono>
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "cli/poll.hpp"

namespace fencepost::cli::testing {

// Each look at "/t" sees the next of these; the last stays.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::deque<Result<boost::json::value>> scenes) : scenes_(std::move(scenes)) {}

  Result<boost::json::value> get(const std::string& target, std::chrono::milliseconds) override {
    EXPECT_EQ(target, "/t");
    ++looks;
    auto scene = scenes_.front();
    if (scenes_.size() > 1) scenes_.pop_front();
    return scene;
  }
  Result<boost::json::value> post(const std::string&, const boost::json::value&, bool) override {
    return fail(internal("unexpected", "following changes nothing"));
  }

  int looks = 0;
  std::chrono::steady_clock::time_point time;

 private:
  std::deque<Result<boost::json::value>> scenes_;
};

struct Seen {
  Result<int> code;
  std::string output;
};

// Runs `follow(world, "/t", options)`.
template <class Follow, class Options>
Seen seen(ScriptedApi& api, Follow follow, const Options& options) {
  std::string output;
  const PollWorld world{.api = api,
                        .print = [&](std::string_view text) { output += text; },
                        .now = [&] { return api.time; },
                        .sleep = [&](std::chrono::milliseconds pause) { api.time += pause; }};
  auto code = follow(world, "/t", options);
  return {std::move(code), std::move(output)};
}

}  // namespace fencepost::cli::testing
