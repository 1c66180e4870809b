// `fencepost doctor`: runs the checks of src/doctor in parallel and prints their findings.
#include "doctor/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "cli/database.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/verb.hpp"
#include "doctor/chain.hpp"
#include "doctor/consumers.hpp"
#include "doctor/database_probe.hpp"
#include "doctor/email.hpp"
#include "doctor/keystore.hpp"
#include "doctor/nats.hpp"
#include "doctor/transactions.hpp"
#include "doctor/transfer.hpp"

namespace fencepost::cli {
namespace {

using namespace std::chrono_literals;
using doctor::Findings;

struct DoctorFlags {
  ConfigFlags config;
  bool json = false;
};

constexpr auto kRpcTimeout = 5s;
constexpr auto kAuditTimeout = 5s;
constexpr auto kShowWaitingAfter = 300ms;

// Prints each line as soon as its finding is known; JSON is printed once, at the end.
class FindingsReport {
 public:
  FindingsReport(bool json, std::size_t check_width) : json_(json), check_width_(check_width) {}

  void add(Findings findings) {
    for (auto& finding : findings) {
      if (!json_) {
        const auto line = doctor::render_line(finding, check_width_);
        fmt::print("{}\n", wrapped(line, terminal_columns(), doctor::detail_column(check_width_)));
      }
      all_.push_back(std::move(finding));
    }
    std::fflush(stdout);
  }

  void show_waiting(const std::string& check) const {
    if (is_shown()) fmt::print(stderr, "…     {}\r", check);
  }
  void clear_waiting() const {
    if (is_shown()) fmt::print(stderr, "\x1b[K");
  }

  int finish() const {
    if (json_) fmt::print("{}\n", doctor::render_json(all_));
    return doctor::any_failed(all_) ? kExitFailed : kExitDone;
  }

 private:
  bool is_shown() const { return !json_ && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

  bool json_;
  std::size_t check_width_;
  Findings all_;
};

// A group of checks on a thread of its own, so that a slow one does not delay the others.
struct Probe {
  std::string check;
  std::future<Findings> findings;
};

Probe start_probe(std::string check, std::function<Findings()> run) {
  return {std::move(check), std::async(std::launch::async, std::move(run))};
}

std::vector<Probe> start_probes(const Config& config) {
  std::vector<Probe> probes;
  if (!config.database.dsn.empty()) {
    probes.push_back(start_probe("database", [&] { return doctor::check_database(config); }));
    probes.push_back(start_probe("transactions", [&] { return doctor::check_transactions(config, kAuditTimeout); }));
    probes.push_back(start_probe("transfers", [&] { return doctor::check_transfers(config); }));
    probes.push_back(start_probe("consumers", [&] { return doctor::check_consumers(config); }));
  }
  probes.push_back(start_probe("keystore", [&] { return doctor::check_keystore(config.keystore); }));
  if (config.chains.empty()) {
    probes.push_back(start_probe("chains", [] { return Findings{doctor::passed("chains", "none configured")}; }));
  }
  for (const auto& chain : config.chains) {
    probes.push_back(
        start_probe(doctor::chain_check_name(chain), [&] { return doctor::check_chain(chain, kRpcTimeout); }));
  }
  probes.push_back(start_probe("email", [&] { return Findings{doctor::check_email(config.email)}; }));
  probes.push_back(start_probe("nats", [&] { return Findings{doctor::check_nats(config.nats)}; }));
  return probes;
}

Findings await_probe(Probe& probe, const FindingsReport& report) {
  if (probe.findings.wait_for(kShowWaitingAfter) != std::future_status::ready) {
    report.show_waiting(probe.check);
    probe.findings.wait();
    report.clear_waiting();
  }
  try {
    return probe.findings.get();
  } catch (const std::exception&) {
    const auto error = error_of(std::current_exception());
    return {doctor::failed(probe.check, doctor::one_line(error.message), "")};
  }
}

std::size_t widest_check(const Result<Config>& config) {
  std::size_t width = std::string_view("transactions").size();
  if (!config) return width;
  for (const auto& chain : config->chains) width = std::max(width, doctor::chain_check_name(chain).size());
  return width;
}

std::string config_file_of(const ConfigFlags& flags, const Result<DatabaseChoice>& choice) {
  if (choice && !choice->up.empty()) return fmt::format("as the 'up' in {} runs", choice->up);
  if (!flags.config_file.empty()) return flags.config_file;
  const char* variable = std::getenv("FENCEPOST_CONFIG");
  return variable == nullptr ? "" : variable;
}

// Findings about the configuration: its problems, its warnings and the source of database.dsn.
Findings config_findings(const Result<DatabaseChoice>& choice, const Result<Config>& config, const std::string& file) {
  auto findings = doctor::assess_config(config, file);
  if (!choice) return findings;
  for (const auto& warning : choice->config.warnings) {
    findings.push_back(doctor::warned("config", warning, "unset the variable, or correct its name"));
  }
  if (!choice->from.empty()) findings.push_back(doctor::passed("config", "database.dsn from " + choice->from));
  return findings;
}

int run_doctor(const DoctorFlags& flags) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto choice = find_database(flags.config, KeyFiles::kOpened);
  const auto config = choice ? Result<Config>(choice->config) : fail(choice.error());
  FindingsReport findings(flags.json, widest_check(config));
  findings.add(config_findings(choice, config, config_file_of(flags.config, choice)));
  if (!config) {
    findings.add(
        {doctor::warned("others", "database, chains, mail and NATS were not checked", "fix the configuration first")});
    return findings.finish();
  }
  auto probes = start_probes(*config);
  for (auto& probe : probes) findings.add(await_probe(probe, findings));
  return findings.finish();
}

}  // namespace

void add_doctor(CLI::App& noun, Run& run) {
  const auto flags = on_parsed<DoctorFlags>(noun, run, run_doctor);
  add_config_flags(noun, flags->config);
  add_json_flag(noun, flags->json);
}

}  // namespace fencepost::cli
