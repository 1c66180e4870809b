// The nouns of the command line, each in the file or folder of its name. cli.cpp's table gives each its name and its
// line of help; a new noun is its file, its declaration here and its line there.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace fencepost::cli {

// The action that the command line asks for, run after parsing. Returns the process's exit code.
using Run = std::function<int()>;

// Each adds its flags and verbs to `noun`; parsing one of them sets `run`. Requires: `run` outlives the parsing.
void add_up(CLI::App& noun, Run& run);
void add_serve(CLI::App& noun, Run& run);
void add_migrate(CLI::App& noun, Run& run);
void add_doctor(CLI::App& noun, Run& run);
void add_config(CLI::App& noun, Run& run);
void add_apikey(CLI::App& noun, Run& run);
void add_whoami(CLI::App& noun, Run& run);
void add_tx(CLI::App& noun, Run& run);
void add_signer(CLI::App& noun, Run& run);
void add_events(CLI::App& noun, Run& run);
void add_mail(CLI::App& noun, Run& run);
void add_timelock(CLI::App& noun, Run& run);
void add_transfer(CLI::App& noun, Run& run);
void add_webhook(CLI::App& noun, Run& run);
void add_chain(CLI::App& noun, Run& run);
void add_node(CLI::App& noun, Run& run);

}  // namespace fencepost::cli
