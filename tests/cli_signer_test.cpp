// `fencepost signer new|import|list`: the key files of a node.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>

#include "tests/support/cast.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/terminal.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Anvil's first account with its checksum.
constexpr auto kAddress = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

class CliSigner : public testing::Test {
 protected:
  CliSigner() {
    std::ofstream(password_file_) << "correct horse\n";
    std::ofstream(key_file_) << signer_key(0) << "\n";
  }

  Finished signer(std::vector<std::string> arguments, const std::vector<std::string>& env = {}) const {
    arguments.insert(arguments.begin(), "signer");
    arguments.insert(arguments.end(), {"--keystore-dir", keys_.string()});
    return fencepost(std::move(arguments), env);
  }
  Finished import_key() const {
    return signer({"import", "--key-file", key_file_.string(), "--password-file", password_file_.string()});
  }
  std::vector<fs::path> key_files() const {
    std::vector<fs::path> out;
    if (!fs::exists(keys_)) return out;
    for (const auto& entry : fs::directory_iterator(keys_)) out.push_back(entry.path());
    return out;
  }

  TempDir dir_{"signer"};
  fs::path keys_ = dir_ / "keys";
  fs::path password_file_ = dir_ / "password";
  fs::path key_file_ = dir_ / "key";
};

TEST_F(CliSigner, a_new_key_file_can_be_opened_by_cast_and_only_read_by_its_owner) {
  const auto made = signer({"new", "--password-file", password_file_.string(), "--json"});
  ASSERT_EQ(made.status.code, 0) << made.err;
  const auto facts = json::parse(made.out);
  const std::string address(facts.at("address").as_string());
  const std::string file(facts.at("file").as_string());
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(cast({"wallet", "address", "--keystore", file, "--password", "correct horse"}), address);

  const auto again = signer({"new", "--password-file", password_file_.string()});
  ASSERT_EQ(again.status.code, 0) << again.err;
  EXPECT_THAT(again.out, StartsWith("address  0x"));
  EXPECT_THAT(again.out, HasSubstr("Back up the file"));
  EXPECT_EQ(key_files().size(), 2U);
}

TEST_F(CliSigner, list_shows_key_files_without_a_password) {
  const auto none = signer({"list"});
  EXPECT_EQ(none.status.code, 2) << "the directory does not exist";
  fs::create_directory(keys_);
  const auto empty = signer({"list"});
  EXPECT_EQ(empty.status.code, 0) << empty.err;
  EXPECT_THAT(empty.out, HasSubstr("fencepost signer new"));

  ASSERT_EQ(import_key().status.code, 0);
  std::ofstream(keys_ / "notes") << "not a key";
  const auto listed = signer({"list"});
  EXPECT_EQ(listed.status.code, 0) << listed.err;
  EXPECT_THAT(listed.out, StartsWith("ADDRESS"));
  EXPECT_THAT(listed.out, HasSubstr(std::string(kAddress) + "  UTC--"));
  EXPECT_THAT(listed.out, HasSubstr("not stated"));

  const auto page = json::parse(signer({"list", "--json"}).out);
  EXPECT_TRUE(page.at("nextCursor").is_null());
  const auto& items = page.at("items").as_array();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].at("address").as_string(), kAddress);
  EXPECT_TRUE(items[0].at("problem").is_null());
  EXPECT_FALSE(items[1].at("problem").is_null());
}

TEST_F(CliSigner, imports_a_key_from_a_file_a_pipe_and_another_key_file) {
  const auto from_file = import_key();
  ASSERT_EQ(from_file.status.code, 0) << from_file.err;
  EXPECT_THAT(from_file.out, StartsWith("address  " + std::string(kAddress)));

  const auto file = key_files().at(0);
  const auto twice = import_key();
  EXPECT_EQ(twice.status.code, 1) << "the key already has a file";
  EXPECT_THAT(twice.err, HasSubstr(file.filename().string()));
  EXPECT_EQ(key_files().size(), 1U);

  fs::rename(file, dir_ / "old");
  const auto piped = run_command({"sh", "-c", R"("$@" < "$0")", key_file_.string(), fencepost_program(), "signer",
                                  "import", "--keystore-dir", keys_.string()},
                                 {"FENCEPOST_KEYSTORE_PASSWORD=another"});
  ASSERT_EQ(piped.status.code, 0) << piped.err;
  EXPECT_EQ(cast({"wallet", "address", "--keystore", key_files().at(0), "--password", "another"}), kAddress);

  fs::remove(key_files().at(0));
  const auto moved = signer({"import", "--from-keystore", dir_ / "old", "--from-password-file", password_file_.string(),
                             "--password-file", password_file_.string(), "--json"});
  ASSERT_EQ(moved.status.code, 0) << moved.err;
  EXPECT_EQ(json::parse(moved.out).at("address").as_string(), kAddress);
}

TEST_F(CliSigner, a_failed_import_writes_no_file_and_shows_no_secret) {
  const auto with_password = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "import");
    arguments.insert(arguments.end(), {"--password-file", password_file_.string()});
    return signer(std::move(arguments));
  };
  std::ofstream(dir_ / "bad") << "0xhunter2";
  const auto bad = with_password({"--key-file", dir_ / "bad"});
  EXPECT_EQ(bad.status.code, 2);
  EXPECT_THAT(bad.err, Not(HasSubstr("hunter2")));
  EXPECT_EQ(with_password({"--key-file", dir_ / "nowhere"}).status.code, 2);
  EXPECT_EQ(with_password({"--from-keystore", dir_ / "nowhere", "--from-password-file", password_file_}).status.code,
            2);
  EXPECT_EQ(with_password({"--from-keystore", "x", "--key-file", "y"}).status.code, 2);

  ASSERT_EQ(import_key().status.code, 0);
  fs::rename(key_files().at(0), dir_ / "old");
  std::ofstream(dir_ / "wrong") << "battery staple";
  const auto wrong = with_password({"--from-keystore", dir_ / "old", "--from-password-file", dir_ / "wrong"});
  EXPECT_EQ(wrong.status.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("password"));
  EXPECT_TRUE(key_files().empty());
}

TEST_F(CliSigner, without_a_password_and_a_terminal_the_error_says_how_to_give_one) {
  const auto nothing = run_command({"setsid", "--wait", fencepost_program(), "signer", "new", "--keystore-dir", keys_});
  EXPECT_EQ(nothing.status.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--password-file"));
  EXPECT_THAT(nothing.err, HasSubstr("FENCEPOST_KEYSTORE_PASSWORD"));
  const auto nowhere = fencepost({"signer", "new"});
  EXPECT_EQ(nowhere.status.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--keystore-dir"));
  EXPECT_TRUE(key_files().empty());
}

TEST_F(CliSigner, on_a_terminal_the_password_is_asked_for_twice_and_not_shown) {
  const std::vector<std::string> command{fencepost_program(), "signer", "new", "--keystore-dir", keys_.string()};
  Terminal mistyped(command);
  ASSERT_TRUE(mistyped.shows("Password for the key file: ")) << mistyped.screen();
  mistyped.type("hunter2\n");
  ASSERT_TRUE(mistyped.shows("Repeat the password: ")) << mistyped.screen();
  mistyped.type("hunter3\n");
  EXPECT_EQ(mistyped.end(), 2);
  EXPECT_THAT(mistyped.screen(), HasSubstr("the two passwords differ"));
  EXPECT_TRUE(key_files().empty());

  Terminal typed(command);
  ASSERT_TRUE(typed.shows("Password for the key file: ")) << typed.screen();
  typed.type("hunter2\n");
  ASSERT_TRUE(typed.shows("Repeat the password: ")) << typed.screen();
  typed.type("hunter2\n");
  EXPECT_EQ(typed.end(), 0) << typed.screen();
  EXPECT_THAT(typed.screen(), Not(HasSubstr("hunter2")));
  ASSERT_EQ(key_files().size(), 1U);
  const auto address = cast({"wallet", "address", "--keystore", key_files().at(0), "--password", "hunter2"});
  EXPECT_THAT(typed.screen(), HasSubstr(address));
}

TEST_F(CliSigner, a_node_signs_with_the_keys_of_its_keystore_directory) {
  const auto made = signer({"new", "--password-file", password_file_.string(), "--json"});
  ASSERT_EQ(made.status.code, 0) << made.err;
  const std::string address(json::parse(made.out).at("address").as_string());
  TxCluster cluster({.start = false});
  auto& node = cluster.node(0);
  const auto directory = "FENCEPOST_KEYSTORE_DIRECTORY=" + keys_.string();
  const auto refused = fencepost({"serve", "--config", node.config().string()}, {directory});
  EXPECT_EQ(refused.status.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("FENCEPOST_KEYSTORE_DIRECTORY: keystore.directory: needs the password"));

  node.start({directory, "FENCEPOST_KEYSTORE_PASSWORD_FILE=" + password_file_.string()});
  cluster.rpc("anvil_setBalance", {address, "0xde0b6b3a7640000"});
  const std::vector<std::string> api{"FENCEPOST_URL=" + node.url(""), "FENCEPOST_API_KEY=" + cluster.key()};
  const auto sent = fencepost({"tx", "send", "--signer", address, "--to", recipient(), "--value", "1gwei", "--wait",
                               "mined", "--timeout", "60s"},
                              api);
  ASSERT_EQ(sent.status.code, 0) << sent.out << sent.err << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1'000'000'000);

  const auto listed = fencepost({"signer", "list"}, api);
  EXPECT_EQ(listed.status.code, 0) << listed.err;
  EXPECT_THAT(listed.out, StartsWith("SIGNER"));
  const auto stored = cluster.sql("SELECT signer FROM signer_lease");
  EXPECT_THAT(listed.out, ContainsRegex("\n" + stored + " +31337 +node0/[0-9a-f]+ +1 +1 .* 0.99[0-9]+ ether"));
  const auto of_files = fencepost({"signer", "list", "--keystore-dir", keys_.string()}, api);
  EXPECT_THAT(of_files.out, StartsWith("ADDRESS")) << "--keystore-dir must list the directory, not the node's signers";
}

TEST_F(CliSigner, a_balance_is_null_when_the_chain_does_not_answer) {
  TxCluster cluster({.proxied = true});
  const auto signers = [&] {
    const auto answer = ask({.url = cluster.node(0).url("/api/v1/signers?balances=true"), .key = cluster.key()});
    EXPECT_EQ(answer.status, 200U) << answer.body;
    return answer.json();
  };
  EXPECT_EQ(signers().at("items").at(0).at("balance").as_string(), "10000000000000000000000");
  cluster.chain_proxy(0).blackhole();
  EXPECT_TRUE(signers().at("items").at(0).at("balance").is_null());
  const auto plain = ask({.url = cluster.node(0).url("/api/v1/signers"), .key = cluster.key()}).json();
  EXPECT_FALSE(plain.at("items").at(0).as_object().contains("balance"))
      << "balances must only be there if the caller asks for them";
  const auto bad = ask({.url = cluster.node(0).url("/api/v1/signers?balances=yes"), .key = cluster.key()});
  EXPECT_EQ(bad.status, 400U);
}

}  // namespace
}  // namespace fencepost::test
