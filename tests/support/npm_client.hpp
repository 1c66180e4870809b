// Runs the scripts of tests/clients, which are written with the libraries that people use.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {

// Returns what the script reports; an empty object, and a failure of the test, when it ends with an error.
inline boost::json::value run_client(const std::string& script, std::vector<std::string> arguments) {
  const auto dir = source_dir() / "tests/clients";
  std::vector<std::string> argv{"node", dir / script};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto done = run_command(std::move(argv), {}, std::chrono::seconds(120));
  EXPECT_TRUE(done.status.success()) << script << ": " << done.status.to_string() << "\n" << done.out << done.err;
  if (!done.status.success()) return boost::json::object();
  return boost::json::parse(done.out);
}

}  // namespace fencepost::test
