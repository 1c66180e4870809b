// `fencepost transfer …`: transfers, statements and audits, through the API.
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/text.hpp"
#include "http/uri.hpp"

#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/transfer/verbs.hpp"
#include "cli/verb.hpp"
#include "cli/watching.hpp"

namespace fencepost::cli {
CLI::Validator whole_number(std::int64_t min) {
  const auto check = [min](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const bool whole = read.ec == std::errc{} && read.ptr == end && std::to_string(number) == text;
    if (whole && number >= min) return "";
    return fmt::format("expected a whole number from {} to {}, got '{}'", min, std::numeric_limits<std::int64_t>::max(),
                       text);
  };
  return {check, "NUMBER", "whole_number"};
}

void add_transfer(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_transfer_send(noun, run);
  add_transfer_show(noun, run);
  add_transfer_account(noun, run);
  add_transfer_operate(noun, run);
}

void add_number(CLI::App& command, const std::string& name, std::string& value, const std::string& help,
                std::int64_t min) {
  command.add_option(name, value, help)->required()->check(whole_number(min));
}

void add_key(CLI::App& command, std::string& key) {
  command.add_option("--key", key,
                     "Idempotency key: a retry with the same key moves no money twice; generated if not given");
}

std::string transfer_target(const std::string& transfer_id) {
  return "/api/v1/transfers/" + http::percent_encode(transfer_id);
}

std::string account_target(const std::string& guild, const std::string& member) {
  return fmt::format("/api/v1/guilds/{}/accounts/{}", http::percent_encode(guild), http::percent_encode(member));
}

std::string key_or_new(const std::string& given) {
  if (!given.empty()) return given;
  auto key = new_request_id();
  print_notice(fmt::format("key {}: repeat with --key to retry safely", key));
  return key;
}

int follow_on_terminal(Api& api, const std::string& transfer_id, const TransferFollowOptions& options,
                       const ApiFlags& flags) {
  const Watching watching("the transfer", command_again("transfer watch " + shell_word(transfer_id), flags));
  const auto world = terminal_world(api);
  const auto code = follow_transfer(world, transfer_target(transfer_id), options);
  if (!code) return report(code.error());
  return *code == kExitNotYet ? watching.timed_out() : *code;
}

}  // namespace fencepost::cli
