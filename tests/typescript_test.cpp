// TypeScript types generated from api/openapi.json: the examples of the docs and tests/clients/types.ts compile with
// them.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/read_file.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;

fs::path clients() {
  return source_dir() / "tests/clients";
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

// The blocks of a page that begin with ```ts.
std::vector<std::string> examples_of(const fs::path& page) {
  std::vector<std::string> out;
  std::istringstream lines(read_file(page));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (inside && line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      out.back() += line + "\n";
    } else if (line == "```ts") {
      inside = true;
      out.emplace_back();
    }
  }
  return out;
}

// A directory with the generated types, and the compiler for what is put beside them.
class TypeScript : public testing::Test {
 protected:
  TypeScript() {
    fs::create_directory_symlink(clients() / "node_modules", dir_.path() / "node_modules");
    write_file(dir_.path() / "tsconfig.json", R"({
      "compilerOptions": {
        "strict": true, "noEmit": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true,
        "target": "es2022", "lib": ["es2022"], "module": "nodenext", "types": ["node"]
      },
      "include": ["*.ts"]
    })");
    write_file(dir_.path() / "package.json", R"({"type": "module"})");
    const auto made = run({"openapi-typescript/bin/cli.js", source_dir() / "api/openapi.json", "--output",
                           dir_.path() / "fencepost.d.ts"});
    EXPECT_TRUE(made.status.success()) << made.out << made.err;
  }

  Finished run(std::vector<std::string> arguments) {
    std::vector<std::string> argv{"node", clients() / "node_modules" / arguments.front()};
    argv.insert(argv.end(), arguments.begin() + 1, arguments.end());
    return run_command(std::move(argv), {}, std::chrono::seconds(120));
  }

  // What the compiler says about the files; empty: nothing.
  std::string complaints() {
    const auto done = run({"typescript/bin/tsc", "--project", dir_.path().string()});
    return done.status.success() ? "" : done.out + done.err;
  }

  TempDir dir_;
};

TEST_F(TypeScript, the_docs_examples_compile_with_types_of_the_openapi_document) {
  int count = 0;
  std::vector<fs::path> pages{source_dir() / "README.md"};
  for (const auto& entry : fs::directory_iterator(source_dir() / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const auto& page : pages) {
    for (const auto& example : examples_of(page)) {
      write_file(dir_.path() / fmt::format("{}_{}.ts", page.stem().string(), ++count), example);
    }
  }
  EXPECT_GT(count, 0);
  EXPECT_EQ(complaints(), "");
}

TEST_F(TypeScript, the_types_say_what_members_there_are) {
  fs::copy_file(clients() / "types.ts", dir_.path() / "types.ts");
  EXPECT_EQ(complaints(), "");
}

TEST_F(TypeScript, a_member_that_does_not_exist_is_an_error) {
  write_file(dir_.path() / "wrong.ts", R"(
    import type { components } from "./fencepost.js";
    export const state = (tx: components["schemas"]["ManagedTx"]) => tx.stat;
  )");
  EXPECT_NE(complaints().find("'stat' does not exist"), std::string::npos);
}

}  // namespace
}  // namespace fencepost::test
