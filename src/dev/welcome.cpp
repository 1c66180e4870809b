#include "dev/welcome.hpp"

#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.hpp"
#include "node/system_routes.hpp"
#include "runtime/leftover_process.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

}  // namespace

std::string welcome(const UpFacts& facts) {
  const auto key = facts.api_key.reveal();
  std::string out = fmt::format("\nFencepost {} is up.\n\n", version());
  out += fmt::format("  API       {}   (described in {}/openapi.json)\n", facts.url, facts.url);
  out += fmt::format("  API key   {}\n", key);
  if (facts.signers.empty()) {
    out += fmt::format("  Chain     chain id {}, as configured\n", facts.chain_id);
  } else {
    out += fmt::format("  Chain     {}, chain id {}: a block every second, {} funded signers\n", facts.rpc_url,
                       facts.chain_id, facts.signers.size());
  }
  out += fmt::format("  Database  psql '{}'\n", facts.dsn);
  const auto relative = facts.cluster_dir.lexically_relative(facts.data_dir);
  const bool apart = relative.empty() || *relative.begin() == "..";
  out += fmt::format("  Data      {}{}\n", facts.data_dir.string(),
                     apart ? fmt::format(" and {}", facts.cluster_dir.string()) : "");
  out += fmt::format("            (delete {} to start from scratch)\n", apart ? "both" : "it");
  if (!facts.mail_dir.empty()) {
    out +=
        fmt::format("  Mail      {}   ({} mail list{})\n", facts.mail_dir.string(), facts.program, facts.data_dir_flag);
  }
  out += fmt::format("  Log       {}\n\nTry, in another terminal{}:\n", facts.log_file,
                     facts.data_dir_flag.empty() ? " in this folder" : "");
  const auto command = [&](std::string_view words) {
    return fmt::format("  {} {}{}", facts.program, words, facts.data_dir_flag);
  };
  out += command("signer list") + "\n";
  if (facts.signers.size() >= 2) {
    out += fmt::format("{} --signer {} --to {} --value 1 --wait confirmed\n", command("tx send"), facts.signers[0],
                       facts.signers[1]);
  }
  out += fmt::format("  curl -H 'Authorization: Bearer {}' {}/api/v1/whoami\n\n", key, facts.url);
  out += "Ctrl-C stops everything; the data is kept.\n";
  return out;
}

std::string up_json(const UpFacts& facts) {
  const auto process = process_info(::getpid());
  json::object out{{"url", facts.url},
                   {"apiKey", std::string(facts.api_key.reveal())},
                   {"rpcUrl", facts.rpc_url},
                   {"chainId", facts.chain_id},
                   {"signers", json::array(facts.signers.begin(), facts.signers.end())},
                   {"dsn", facts.dsn},
                   {"pid", static_cast<std::int64_t>(::getpid())},
                   {"startTicks", process ? process->start_ticks : 0}};
  for (const auto& member : facts.settings) out[member.key()] = member.value();
  return json::serialize(out) + "\n";
}

std::string data_dir_flag(const fs::path& given, const fs::path& working_directory) {
  const auto place = [&](const fs::path& path) { return fs::weakly_canonical(working_directory / path / ""); };
  return place(given) == place("var") ? "" : " --data-dir " + shell_word(given.string());
}

}  // namespace fencepost
