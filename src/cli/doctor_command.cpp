#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/log.hpp"

#include "cli/commands.hpp"
#include "doctor/chain.hpp"
#include "doctor/database_probe.hpp"
#include "doctor/doctor.hpp"
#include "doctor/email.hpp"
#include "doctor/transfer.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using doctor::Findings;

constexpr auto kRpcTimeout = 5s;
constexpr auto kPatience = 300ms;  // before a person is told what is waited for

// Probes log what they meet; here every one of those lines would be said twice.
class Quiet {
 public:
  Quiet() { log::set_level(log::Level::kOff); }
  ~Quiet() { log::set_level(before_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  log::Level before_ = log::level();
};

// Lines appear as soon as they are known; JSON comes at the end, in one piece.
class Report {
 public:
  Report(bool json, std::size_t check_width) : json_(json), check_width_(check_width) {}

  void add(Findings findings) {
    for (auto& finding : findings) {
      if (!json_) fmt::print("{}\n", doctor::render_line(finding, check_width_));
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

// A group of checks, at work on a thread of its own: what one part of the world costs in time, the others do not.
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
    probes.push_back(start_probe("transfers", [&] { return doctor::check_transfers(config); }));
  }
  if (config.chains.empty()) {
    probes.push_back(start_probe("chains", [] { return Findings{doctor::passed("chains", "none configured")}; }));
  }
  for (const auto& chain : config.chains) {
    probes.push_back(
        start_probe(doctor::chain_check_name(chain), [&] { return doctor::check_chain(chain, kRpcTimeout); }));
  }
  probes.push_back(start_probe("email", [&] { return Findings{doctor::check_email(config.email)}; }));
  return probes;
}

Findings await_probe(Probe& probe, const Report& report) {
  if (probe.findings.wait_for(kPatience) != std::future_status::ready) {
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
  std::size_t width = std::string_view("transfers").size();
  if (!config) return width;
  for (const auto& chain : config->chains) width = std::max(width, doctor::chain_check_name(chain).size());
  return width;
}

std::string config_file_of(const ConfigFlags& flags) {
  if (!flags.config_file.empty()) return flags.config_file;
  const char* variable = std::getenv("FENCEPOST_CONFIG");
  return variable == nullptr ? "" : variable;
}

}  // namespace

int doctor_command(const DoctorFlags& flags) {
  const Quiet quiet;
  ::signal(SIGPIPE, SIG_IGN);
  const auto config = load(flags.config, {}, KeyFiles::kOpened);
  Report report(flags.json, widest_check(config));
  report.add(doctor::assess_config(config, config_file_of(flags.config)));
  if (!config) {
    report.add(
        {doctor::warned("others", "database, chains and mail were not checked", "mend the configuration first")});
    return report.finish();
  }
  auto probes = start_probes(*config);
  for (auto& probe : probes) report.add(await_probe(probe, report));
  return report.finish();
}

}  // namespace fencepost
