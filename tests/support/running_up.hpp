// A `fencepost up` with a directory of its own, for tests of programs that use it.
#pragma once

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

class RunningUp {
 public:
  // Returns when it is up. Throws with its output if it does not come up. `env` is added to our environment.
  explicit RunningUp(const std::vector<std::string>& env = {})
      : up_({"up", "--data-dir", (dir_ / "var").string(), "--port", "0"}, dir_ / "output", env) {
    const auto announced = [&] { return std::filesystem::exists(dir_ / "var/up.json"); };
    if (!eventually(announced, std::chrono::seconds(90))) throw std::runtime_error(up_.output());
    facts_ = boost::json::parse(read_file(dir_ / "var/up.json"));
  }

  std::string url() const { return fact("url"); }
  std::string key() const { return fact("apiKey"); }
  std::string dsn() const { return fact("dsn"); }
  std::string rpc_url() const { return fact("rpcUrl"); }
  std::string output() const { return up_.output(); }
  // Where the programs of the test may write.
  std::filesystem::path path(const std::string& name) const { return dir_ / name; }
  // What commands and clients read.
  std::vector<std::string> environment() const { return {"FENCEPOST_URL=" + url(), "FENCEPOST_API_KEY=" + key()}; }

 private:
  std::string fact(const char* name) const { return std::string(facts_.at(name).as_string()); }

  TempDir dir_{"up"};
  RunningFencepost up_;
  boost::json::value facts_;
};

}  // namespace fencepost::test
