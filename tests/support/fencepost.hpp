// The real program, as its users run it.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include "runtime/child_process.hpp"
#include "tests/support/process.hpp"

namespace fencepost::test {

// Its path.
std::string fencepost_program();

// Runs `fencepost <arguments>` to its end.
Finished fencepost(std::vector<std::string> arguments, const std::vector<std::string>& env = {});

// `fencepost <arguments>` in the background; stopped (SIGINT, then harder) at the end.
class RunningFencepost {
 public:
  RunningFencepost(std::vector<std::string> arguments, std::filesystem::path output);
  ~RunningFencepost();

  pid_t pid() const { return child_.pid(); }
  bool running() { return child_.running(); }
  std::string output() const;  // stdout and stderr so far
  // What Ctrl-C does; returns how it ended.
  ExitStatus interrupt();
  // What nobody should do.
  void kill();

 private:
  std::filesystem::path output_;
  ChildProcess child_;
};

struct Answer {
  unsigned status = 0;  // 0: no answer
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  boost::json::value json() const;
  // The problem document's code, "" if it is none.
  std::string code() const;
};

struct Ask {
  std::string method = "GET";
  std::string url;
  std::string key;  // sent as Bearer unless empty
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};
Answer ask(const Ask& request);
// What a node's metric stands at, over all its labels or those that `name` ends with; 0 when there is none.
double metric_of(const std::string& node_url, const std::string& name);

// One that no other test is given while this process lives.
std::uint16_t free_port();

}  // namespace fencepost::test
