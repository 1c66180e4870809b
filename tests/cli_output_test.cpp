// What every command prints: help, mistakes, errors for scripts, exit codes. And `fencepost apikey`.
#include <filesystem>
#include <fstream>
#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/terminal.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto kNoDatabase = "host=127.0.0.1 port=1";

TEST(cli_output, a_mistyped_command_is_named_with_the_nearest) {
  const auto bogus = fencepost({"bogus"});
  EXPECT_EQ(bogus.status.code, 2);
  EXPECT_THAT(bogus.err,
              AllOf(StartsWith("fencepost: there is no command \"fencepost bogus\"\n"), HasSubstr("doctor")));
  EXPECT_THAT(fencepost({"tx", "sned"}).err, HasSubstr("\"fencepost tx sned\"; did you mean \"send\"?"));
  EXPECT_THAT(fencepost({"help", "tx", "sned"}).err, HasSubstr("did you mean \"send\"?"));
  EXPECT_EQ(fencepost({"help", "tx", "sned"}).status.code, 2);
}

TEST(cli_output, the_version_is_a_command_and_a_flag) {
  for (const auto* word : {"version", "--version"}) {
    const auto shown = fencepost({word});
    EXPECT_EQ(shown.status.code, 0);
    EXPECT_THAT(shown.out, ContainsRegex("^fencepost [0-9]+\\.[0-9]+\\.[0-9]+\n$")) << word;
  }
}

TEST(cli_output, exit_codes_are_listed_once) {
  const auto listed = fencepost({"help", "exit-codes"});
  EXPECT_EQ(listed.status.code, 0);
  EXPECT_THAT(listed.out, AllOf(HasSubstr("\n  0    done\n"), HasSubstr("\n  130  ended by Ctrl-C\n")));
  EXPECT_THAT(fencepost({"--help"}).out, HasSubstr("Exit codes: fencepost help exit-codes"));
  for (const auto& command : std::vector<std::vector<std::string>>{{}, {"tx"}, {"tx", "send"}, {"doctor"}}) {
    auto with_flag = command;
    with_flag.emplace_back("--help");
    const auto help = fencepost(with_flag).out;
    EXPECT_THAT(help, Not(HasSubstr("unreachable or too busy"))) << fmt::format("{}", fmt::join(with_flag, " "));
    auto with_word = command;
    with_word.insert(with_word.begin(), "help");
    EXPECT_EQ(fencepost(with_word).out, help);
  }
}

TEST(cli_output, with_json_an_error_is_one_document_on_stderr) {
  const struct {
    int exit_code;
    std::string code;
    std::vector<std::string> arguments;
  } cases[] = {
      {2, "bad_usage", {"tx", "sned", "--json"}},
      {2, "bad_usage", {"tx", "list", "--json", "--limit", "0"}},
      {2, "bad_usage", {"tx", "list", "--json", "--bogus"}},
      {5, "not_up", {"tx", "list", "--json", "--data-dir", "/nowhere"}},
      {6, "connect_failed", {"tx", "list", "--json", "--url", "http://127.0.0.1:1", "--api-key", "x"}},
      {6,
       "connect_failed",
       {"tx", "send", "--signer", "0x", "--json", "--request-id", "r", "--url", "http://127.0.0.1:1", "--api-key",
        "x"}},
      {5, "no_config_file", {"apikey", "list", "--json", "--config", "/nowhere.yaml"}},
      {6, "database_unavailable", {"apikey", "list", "--json", "--dsn", kNoDatabase}},
      {6, "database_unavailable", {"migrate", "--json", "--dsn", kNoDatabase}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("fencepost {}", fmt::join(c.arguments, " ")));
    const auto failed = fencepost(c.arguments);
    EXPECT_EQ(failed.status.code, c.exit_code);
    EXPECT_THAT(failed.out, IsEmpty());
    const auto error = json::parse(failed.err);
    EXPECT_EQ(error.at("code").as_string(), c.code);
    EXPECT_EQ(error.at("exitCode").as_int64(), c.exit_code);
    EXPECT_FALSE(error.at("message").as_string().empty());
    EXPECT_TRUE(error.at("details").is_object());
  }
}

TEST(cli_output, an_unreachable_database_is_reported_once_with_the_cause) {
  const auto failed = fencepost({"apikey", "list", "--dsn", kNoDatabase});
  EXPECT_EQ(failed.status.code, 6);
  EXPECT_THAT(failed.err, AllOf(StartsWith("fencepost: the database cannot be reached\n"), HasSubstr("\n  cause: "),
                                HasSubstr("Connection refused"), HasSubstr("\n  database from: --dsn\n")));
}

TEST(cli_output, a_short_flag_that_does_not_exist_is_named) {
  EXPECT_THAT(fencepost({"-v"}).err, StartsWith("fencepost: there is no flag \"-v\" of fencepost\n"));
  EXPECT_THAT(fencepost({"tx", "send", "-x"}).err, HasSubstr("there is no flag \"-x\" of fencepost tx send\n"));
}

TEST(cli_output, a_list_of_mails_that_is_cut_says_so) {
  const TempDir dir("mails");
  for (const auto* name : {"1", "2"}) {
    std::ofstream(dir / (std::string(name) + ".eml"))
        << "Message-ID: <" << name << ".x@example.org>\r\nTo: a@example.org\r\n"
        << "Content-Type: multipart/alternative; boundary=\"b\"\r\n\r\n--b\r\n\r\ntext\r\n--b--\r\n";
  }
  const auto list = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"mail", "list", "--dir", dir.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fencepost(arguments);
  };
  EXPECT_THAT(list({"--limit", "1"}).out, testing::EndsWith("\nthere are more: raise --limit\n"));
  const auto for_scripts = list({"--limit", "1", "--json"});
  EXPECT_EQ(json::parse(for_scripts.out).at("items").as_array().size(), 1U);
  EXPECT_EQ(for_scripts.err, "{\"notice\":\"there are more: raise --limit\"}\n");
  EXPECT_THAT(list({"--json"}).err, IsEmpty());
}

TEST(cli_output, with_json_a_notice_is_a_document_too) {
  const auto failed =
      fencepost({"tx", "send", "--signer", "0x", "--json", "--url", "http://127.0.0.1:1", "--api-key", "x"});
  const auto line_end = failed.err.find('\n');
  const auto notice = json::parse(failed.err.substr(0, line_end));
  EXPECT_THAT(std::string(notice.at("notice").as_string()), HasSubstr("repeat with --request-id"));
  EXPECT_EQ(json::parse(failed.err.substr(line_end + 1)).at("code").as_string(), "connect_failed");
}

class CliApikey : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = run({"migrate", "--json"});
    ASSERT_EQ(migrated.status.code, 0);
    EXPECT_GT(json::parse(migrated.out).at("applied").as_array().size(), 1U);
    EXPECT_THAT(migrated.err, IsEmpty());
  }

  Finished run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--dsn", db_.dsn()});
    return fencepost(std::move(arguments));
  }

  TestDatabase db_;
};

TEST_F(CliApikey, a_scope_that_does_not_exist_is_refused_with_the_list) {
  const auto refused = run({"apikey", "create", "--label", "a", "--scope", "tx:read", "--scope", "txs:read"});
  EXPECT_EQ(refused.status.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("\"txs:read\" is not a scope; did you mean \"tx:read\"?"),
                                 HasSubstr("Scopes: admin, tx:read, tx:write"), HasSubstr("webhooks:write")));
  EXPECT_THAT(fencepost({"help", "apikey", "create"}).out, HasSubstr("transfer:operate"));
  EXPECT_EQ(run({"apikey", "list"}).out.substr(0, 12), "no keys yet:");
}

TEST_F(CliApikey, the_list_shows_what_limits_a_key) {
  const std::string signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
  ASSERT_EQ(run({"apikey", "create", "--label", "free", "--scope", "admin"}).status.code, 0);
  ASSERT_EQ(run({"apikey", "create", "--label", "bound", "--scope", "tx:write", "--signer", signer, "--guild", "1",
                 "--guild", "2", "--guild", "3", "--guild", "4", "--expires-in", "30d"})
                .status.code,
            0);
  const auto list = run({"apikey", "list"}).out;
  EXPECT_THAT(list, ContainsRegex("free .* never +never +admin +none\n"));
  EXPECT_THAT(list, ContainsRegex("bound .* never +20..-..-.. ..:.. +tx:write +signers 0xf39fd6e5….266; "
                                  "guilds 1, 2, 3 and 1 more\n"));
  for (const unsigned short width : {80, 60}) {
    Terminal terminal({fencepost_program(), "apikey", "list", "--dsn", db_.dsn()}, {}, width);
    EXPECT_EQ(terminal.end(), 0);
    EXPECT_LE(terminal.widest_line(), width) << terminal.screen();
    EXPECT_THAT(terminal.screen(), AllOf(HasSubstr("KEY ID"), HasSubstr("active")));
    EXPECT_THAT(terminal.screen(), HasSubstr("  signer")) << "a key that is bound must not look unrestricted";
  }
}

TEST_F(CliApikey, the_documents_of_create_list_and_revoke_agree) {
  const auto made = json::parse(run({"apikey", "create", "--json", "--label", "a", "--scope", "admin"}).out);
  const auto listed = json::parse(run({"apikey", "list", "--json"}).out).at("items").at(0);
  EXPECT_EQ(made.at("keyId"), listed.at("keyId"));
  EXPECT_EQ(made.at("createdAt"), listed.at("createdAt"));
  const std::string id(made.at("keyId").as_string());
  const auto revoked = run({"apikey", "revoke", "--json", id});
  EXPECT_EQ(json::parse(revoked.out), json::value({{"keyId", id}}));
  const auto again = run({"apikey", "revoke", "--json", id});
  EXPECT_EQ(again.status.code, 5);
  EXPECT_EQ(json::parse(again.err).at("code").as_string(), "no_such_key");
}

// The command line reads FENCEPOST_API_KEY, so an example that sends another variable does not work when pasted.
TEST(cli_output, the_docs_use_the_variable_that_the_command_line_reads) {
  std::vector<std::filesystem::path> pages{source_dir() / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  const std::regex sent_key(R"re((?:Bearer |--api-key )\$\{?(?:process\.env\.)?(\w+))re");
  std::size_t found = 0;
  for (const auto& page : pages) {
    const auto text = read_file(page);
    for (std::sregex_iterator match(text.begin(), text.end(), sent_key), end; match != end; ++match) {
      EXPECT_EQ((*match)[1].str(), "FENCEPOST_API_KEY") << page;
      ++found;
    }
  }
  EXPECT_GT(found, 5U);
}

}  // namespace
}  // namespace fencepost::test
