// What `up` prints once everything runs, and what it leaves for scripts in up.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/secret.hpp"

namespace fencepost {

// What a person or a script needs to use what is up.
struct UpFacts {
  std::string url;
  Secret api_key;
  std::string rpc_url;
  std::int64_t chain_id = 0;
  std::vector<std::string> signers;  // the funded ones of the dev chain; empty: the user configured a chain
  std::string dsn;
  std::filesystem::path data_dir;     // absolute
  std::filesystem::path cluster_dir;  // PostgreSQL's data, mostly below data_dir
  std::string log_file;
  // For commands that work when pasted where the user is.
  std::string program = "fencepost";  // as the user starts it: "./fp"
  std::string data_dir_flag;          // " --data-dir x"; empty: commands find it by themselves
};

std::string welcome(const UpFacts& facts);
std::string up_json(const UpFacts& facts);

// " --data-dir x", unless `given` is where commands look anyway: "var" in the working directory.
std::string data_dir_flag(const std::filesystem::path& given, const std::filesystem::path& working_directory);

}  // namespace fencepost
