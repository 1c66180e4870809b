// Runs the real program, as users do.
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

// The path of the program.
std::string fencepost_program();

// Runs `fencepost <arguments>` to its end.
Finished fencepost(std::vector<std::string> arguments, const std::vector<std::string>& env = {});

// `fencepost <arguments>` in the background. The destructor stops it (SIGINT, then harder).
class RunningFencepost {
 public:
  // `env` is added to ours. An empty `cwd` is our working directory.
  RunningFencepost(std::vector<std::string> arguments, std::filesystem::path output,
                   const std::vector<std::string>& env = {}, const std::filesystem::path& cwd = {});
  ~RunningFencepost();

  pid_t pid() const { return child_.pid(); }
  bool running() { return child_.running(); }
  std::string output() const;  // stdout and stderr so far
  // Sends SIGINT, as Ctrl-C does. Returns how the program ended.
  ExitStatus interrupt();
  // SIGKILL.
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
  // The code of the problem document, "" if the body is not one.
  std::string code() const;
  // The first header of that name, whatever its case; "" if there is none.
  std::string header(std::string_view name) const;
};

struct Ask {
  std::string method = "GET";
  std::string url;
  std::string key;  // sent as Bearer unless empty
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // additional headers
};
Answer ask(const Ask& request);
// The sum of a node's counter or gauge over all series that have the labels at the end of `name` and any others
// (`tx_submit_total{result="accepted"}`). `name` is without `fencepost_`. 0 if there is none.
double metric_of(const std::string& node_url, const std::string& name);

// A port that no other test gets while this process lives.
std::uint16_t free_port();

}  // namespace fencepost::test
