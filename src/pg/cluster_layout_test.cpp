#include "pg/cluster_layout.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost::pg {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void fake_install(const fs::path& root, const std::string& version) {
  fs::create_directories(root / version / "bin");
  for (const auto* program : {"postgres", "initdb"}) {
    std::ofstream(root / version / "bin" / program) << "#!/bin/sh\n";
    fs::permissions(root / version / "bin" / program, fs::perms::owner_all);
  }
}

TEST(cluster_layout, takes_the_newest_server_that_is_new_enough) {
  const test::TempDir root("layout");
  for (const auto* version : {"9", "13", "15", "14"}) fake_install(root.path(), version);
  const auto found = find_cluster_programs(std::nullopt, root.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->major, 15);
  EXPECT_EQ(found->bin_dir, root / "15" / "bin");
}

TEST(cluster_layout, takes_the_version_that_made_the_cluster) {
  const test::TempDir root("layout");
  for (const auto* version : {"14", "15"}) fake_install(root.path(), version);
  fs::create_directories(root / "pgdata");
  std::ofstream(root / "pgdata" / "PG_VERSION") << "14\n";
  EXPECT_EQ(cluster_version(root / "pgdata"), 14);
  EXPECT_EQ(cluster_version(root / "none"), std::nullopt);
  EXPECT_EQ(find_cluster_programs(14, root.path())->major, 14);
}

TEST(cluster_layout, names_the_package_that_is_missing) {
  const test::TempDir root("layout");
  fake_install(root.path(), "13");
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const auto none = find_cluster_programs(std::nullopt, root.path());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "postgres_missing");
  EXPECT_THAT(none.error().message, HasSubstr("apt-get install postgresql"));

  const auto other = find_cluster_programs(99, root.path());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("apt-get install postgresql-99"));
}

TEST(cluster_layout, a_closed_ancestor_cannot_be_reached) {
  const test::TempDir root("layout");
  const Credentials stranger{12345, 12345, {12345}};
  const Credentials owner{::geteuid(), ::getegid(), {::getegid()}};
  fs::permissions(root.path(), fs::perms(0711));
  fs::create_directories(root / "open/closed/deep");
  fs::permissions(root / "open", fs::perms(0711));
  fs::permissions(root / "open/closed", fs::perms(0700));
  fs::permissions(root / "open/closed/deep", fs::perms(0755));

  EXPECT_TRUE(can_reach(root / "open", stranger));
  EXPECT_TRUE(can_reach(root / "open/not yet there", stranger));
  EXPECT_FALSE(can_reach(root / "open/closed", stranger));
  EXPECT_FALSE(can_reach(root / "open/closed/deep", stranger));
  EXPECT_FALSE(can_reach(root / "open/closed/not/yet/there", stranger));
  EXPECT_TRUE(can_reach(root / "open/closed/deep", owner));

  fs::create_directory_symlink(root / "open/closed/deep", root / "link");
  EXPECT_FALSE(can_reach(root / "link/data", stranger)) << "the target of the link is closed";
}

TEST(cluster_layout, a_group_may_enter_a_directory_that_is_closed_to_others) {
  const test::TempDir root("layout");
  fs::permissions(root.path(), fs::perms(0710));
  EXPECT_TRUE(can_reach(root.path(), Credentials{12345, 12345, {12345, ::getegid()}}));
  EXPECT_FALSE(can_reach(root.path(), Credentials{12345, 12345, {12345}}));
}

TEST(cluster_layout, data_goes_where_its_user_can_reach_it_and_always_to_the_same_place) {
  const test::TempDir root("layout");
  const Credentials stranger{12345, 12345, {}};
  fs::permissions(root.path(), fs::perms(0700));
  EXPECT_EQ(place_data_dir(root / "pg", std::nullopt, "/fallback"), root / "pg") << "ourselves";
  const auto placed = place_data_dir(root / "pg", stranger, "/fallback");
  EXPECT_THAT(placed.string(), StartsWith("/fallback/"));
  EXPECT_EQ(place_data_dir(root / "x/../pg", stranger, "/fallback"), placed);
  EXPECT_NE(place_data_dir(root / "other", stranger, "/fallback"), placed);
  fs::permissions(root.path(), fs::perms(0711));
  EXPECT_EQ(place_data_dir(root / "pg", stranger, "/fallback"), root / "pg");
}

TEST(cluster_layout, the_hash_of_a_path_never_changes) {
  EXPECT_EQ(stable_hash("/root/fencepost/var/postgres"), stable_hash("/root/fencepost/var/postgres"));
  EXPECT_EQ(stable_hash(""), "cbf29ce484222325");
  EXPECT_EQ(stable_hash("a"), "af63dc4c8601ec8c");
}

TEST(cluster_layout, a_private_directory_is_made_once_and_accepted_again) {
  const test::TempDir root("layout");
  ASSERT_TRUE(make_private_dir(root / "d", std::nullopt));
  EXPECT_EQ(fs::status(root / "d").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(make_private_dir(root / "d", std::nullopt));
}

TEST(cluster_layout, a_planted_directory_is_refused) {
  const test::TempDir root("layout");
  fs::create_directory(root / "open");
  fs::permissions(root / "open", fs::perms(0777));
  fs::create_directory_symlink("/tmp", root / "link");
  std::ofstream(root / "file") << "x";
  for (const auto* name : {"open", "link", "file"}) {
    const auto made = make_private_dir(root / name, std::nullopt);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, "socket_dir_not_ours") << name;
  }
  if (::geteuid() == 0) {
    fs::create_directory(root / "other");
    fs::permissions(root / "other", fs::perms(0700));
    ASSERT_EQ(::chown((root / "other").c_str(), 12345, 12345), 0);
    EXPECT_FALSE(make_private_dir(root / "other", std::nullopt)) << "another user owns it";
  }
}

TEST(cluster_layout, a_socket_stays_with_its_data_when_its_name_fits) {
  const test::TempDir root("layout");
  EXPECT_EQ(make_socket_dir(root.path(), std::nullopt), root / "socket");
}

TEST(cluster_layout, a_socket_whose_name_is_too_long_or_needs_quotes_goes_elsewhere) {
  const test::TempDir root("layout");
  for (const auto& data_dir : {root / std::string(100, 'x'), root / "it's, \"quoted\""}) {
    fs::create_directory(data_dir);
    const auto made = make_socket_dir(data_dir, std::nullopt);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(made->string(), StartsWith("/tmp/fencepost-"));
    EXPECT_EQ(fs::status(*made).permissions(), fs::perms::owner_all);
    EXPECT_EQ(make_socket_dir(data_dir, std::nullopt), *made);
    fs::remove(*made);
  }
}

TEST(cluster_layout, a_socket_directory_is_encoded_in_the_dsn) {
  EXPECT_EQ(socket_dsn("/run/a b/it's", "u", "d"), "postgresql://u@/d?host=%2Frun%2Fa%20b%2Fit%27s&port=5432");
}

}  // namespace
}  // namespace fencepost::pg
