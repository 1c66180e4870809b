// One list of error codes (http/error_codes.hpp): the source uses no other, and docs/errors.md has a row for each.
#include "http/error_codes.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
using Codes = std::set<std::string>;

// The modules whose errors can reach an HTTP answer. The others (config, doctor, dev, cli) report to a terminal only.
constexpr std::string_view kModules[] = {"base",    "runtime",  "pg", "http",     "evm",    "identity", "outbox",
                                         "cluster", "transfer", "tx", "timelock", "notify", "node"};

// Codes of those modules that no answer contains: another code replaces them.
const Codes kNeverAnswered = {
    // A delivery to a webhook's receiver: the answer has it as text.
    "address_not_allowed",
    "claim_lost",
    // HTTP client and JSON-RPC: answered as rpc_unavailable, not_leader or outcome_unknown.
    "bad_ca_file",
    "bad_header",
    "bad_reply",
    "bad_response",
    "bad_url",
    "batch_refused",
    "batch_too_large",
    "batch_truncated",
    "client_busy",
    "connect_failed",
    "connection_lost",
    "endpoint_sick",
    "http_status",
    "response_too_large",
    "timeout",
    "tls_failed",
    "wrong_chain",
    // Block follower and submitter: workers, which answer no requests.
    "blocks_missing",
    "chain_moved",
    "endpoint_syncing",
    "logs_refused",
    "not_linked",
    "signer_unavailable",
    // Scanner of timelocks: a worker, which answers no requests. Its contracts show the failure as text.
    "bad_log",
    "deep_reorg",
    "logs_withheld",
    "rpc_incomplete",
    // Mail: a worker, which answers no requests. The log of mails shows the failure as text.
    "bad_event",
    "bad_mail",
    "bad_smtp_url",
    // Parsers of single values: answered as bad_request or invalid_parameter, with the field.
    "bad_duration",
    "bad_uint256",
    "bad_uuid",
    "json_too_large",
    // Schema: /readyz answers not_ready, with the code in `cause`.
    "database_busy",
    "database_newer",
    "migration_edited",
    "migration_missing",
    "migrations_pending",
    // `fencepost apikey create`.
    "bad_contract",
    "bad_guild",
    "bad_label",
    "bad_scope",
    "bad_signer",
    "too_many_listed",
    // Key files, signing and decoding.
    "bad_abi",
    "bad_keystore",
    "bad_private_key",
    "bad_rlp",
    "bad_signature",
    "bad_transaction",
    "cannot_read_keystore",
    "duplicate_signer",
    "keystore_exists",
    "unsupported_keystore",
    "wrong_password",
    // Start of a node and of its child processes.
    "bad_certificate",
    "bad_finality",
    "bad_listen_address",
    "bad_log_file",
    "cannot_start",
    "cluster_failed",
    "cluster_start_timeout",
    "data_dir_in_use",
    "data_dir_not_ours",
    "data_dir_unusable",
    "initdb_failed",
    "listen_failed",
    "no_cluster_user",
    "no_endpoints",
    "no_event_partition",
    "port_taken",
    "postgres_missing",
    "socket_dir_not_ours",
};

Codes listed() {
  Codes codes;
  for (const auto& entry : http::error_codes()) codes.emplace(entry.code);
  return codes;
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(//[^\n]*)"), "");
}

void add_matches(Codes& codes, const std::string& text, const std::regex& pattern) {
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    codes.insert((*it)[1]);
  }
}

template <class F>
void for_each_source(F use) {
  for (const auto module : kModules) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "src" / module)) {
      const auto name = entry.path().filename().string();
      if (name.ends_with("pp") && !name.contains("test")) use(without_comments(read_file(entry.path())));
    }
  }
}

// The literals that are passed to the error factories, except those of internal(): these are answered as `internal`.
Codes codes_in_source() {
  const std::regex factory(
      R"rx(\b(?:invalid|unauthenticated|forbidden|not_found|conflict|too_large|unprocessable|rate_limited|unavailable|reject))rx"
      R"rx(\(\s*"([a-z0-9_]+)")rx");
  const std::regex aggregate(R"rx(ErrorKind::k\w+,\s*"([a-z0-9_]+)")rx");
  const std::regex computed_kind(R"rx(\bError \w+\{\w+\(\w+\),\s*"([a-z0-9_]+)")rx");
  Codes codes;
  for_each_source([&](const std::string& text) {
    for (const auto& pattern : {factory, aggregate, computed_kind}) add_matches(codes, text, pattern);
  });
  return codes;
}

Codes difference(const Codes& from, const Codes& less) {
  Codes rest;
  std::ranges::set_difference(from, less, std::inserter(rest, rest.end()));
  return rest;
}

TEST(error_codes, every_code_of_the_source_is_listed) {
  const auto used = codes_in_source();
  EXPECT_GT(used.size(), 100U) << "the patterns no longer match the error factories";
  auto known = listed();
  known.insert(kNeverAnswered.begin(), kNeverAnswered.end());
  EXPECT_EQ(difference(used, known), Codes{}) << "add them to src/http/error_codes.cpp and docs/errors.md";
}

TEST(error_codes, every_listed_code_is_used) {
  const auto used = codes_in_source();
  EXPECT_EQ(difference(listed(), used), Codes{std::string(http::kInternalCode)});
  EXPECT_EQ(difference(kNeverAnswered, used), Codes{});
}

// A context key with the name of a standard member of the problem document would be lost.
TEST(error_codes, no_context_key_has_the_name_of_a_standard_member) {
  const std::regex reserved(R"rx(\.with\("(type|title|status|detail|code|instance|httpRequestId)")rx");
  Codes found;
  for_each_source([&](const std::string& text) { add_matches(found, text, reserved); });
  EXPECT_EQ(found, Codes{});
}

TEST(error_codes, are_listed_once_and_in_order) {
  const auto codes = http::error_codes();
  EXPECT_EQ(listed().size(), codes.size());
  EXPECT_TRUE(std::ranges::is_sorted(codes, {}, [](const auto& entry) { return std::pair(entry.status, entry.code); }));
}

// Whole rows are compared, so that the page and the list cannot differ.
TEST(error_codes, each_has_its_row_in_the_docs) {
  std::set<std::string> expected;
  for (const auto& [code, status, meaning, action] : http::error_codes()) {
    expected.insert(fmt::format("| {} | `{}` | {} | {} |", status, code, meaning, action));
  }
  std::set<std::string> rows;
  std::istringstream page(read_file(source_dir() / "docs/errors.md"));
  for (std::string line; std::getline(page, line);) {
    if (std::regex_search(line, std::regex(R"(^\| [0-9]{3} \|)"))) rows.insert(line);
  }
  for (const auto& row : expected) EXPECT_TRUE(rows.contains(row)) << "docs/errors.md needs the row\n" << row;
  for (const auto& row : rows) EXPECT_TRUE(expected.contains(row)) << "no such code:\n" << row;
}

}  // namespace
}  // namespace fencepost::test
