// `fencepost mail …`: the files of the transport `file`, the log of mails, and previews.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/mail/mail_files.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/flows.hpp"
#include "cli/verb.hpp"
#include "dev/up_json.hpp"

namespace fencepost::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct FileFlags {
  std::string directory;
  std::string data_dir = "var";
  std::string name;  // of one mail
  std::size_t limit = 50;
  bool html = false;
  bool json = false;
};

struct LogFlags {
  ApiFlags api;
  std::string status;
  std::string email;
  std::string contract;
  PageFlags page;
  bool json = false;
};

struct PreviewFlags {
  ApiFlags api;
  FlowChoice flow;
  std::string status = "waiting";
  std::string language = "en";
  bool correction = false;
  bool text = false;
};

fs::path directory_of(const FileFlags& flags) {
  if (!flags.directory.empty()) return flags.directory;
  const auto* configured = std::getenv("FENCEPOST_EMAIL_DIRECTORY");
  return configured != nullptr ? fs::path(configured) : mail_dir(flags.data_dir);
}

Result<std::vector<MailFile>> read_files(const FileFlags& flags) {
  const auto directory = directory_of(flags);
  auto mails = read_mail_files(directory);
  std::error_code unreadable;
  if (mails && mails->empty() && !fs::exists(directory, unreadable)) {
    print_notice(
        fmt::format("there is no directory {}: no mail was sent yet, or mail does not go to files "
                    "(email.transport), or to another directory (--dir)",
                    printable(directory.string())));
  }
  return mails;
}

json::object file_json(const MailFile& file) {
  const auto sent_at = file.sent_at();
  return {
      {"mail", file.name()},
      {"messageId", file.mail.message_id},
      {"date", sent_at ? json::value(to_rfc3339(*sent_at)) : json::value(nullptr)},
      {"from", file.mail.from},
      {"to", file.mail.to},
      {"subject", file.mail.subject},
      {"unsubscribeUrl", file.mail.unsubscribe_url.empty() ? json::value() : json::value(file.mail.unsubscribe_url)},
      {"text", file.mail.text},
      {"file", file.path.string()}};
}

int list_files(const FileFlags& flags) {
  auto mails = read_files(flags);
  if (!mails) return report(mails.error());
  const bool more = mails->size() > flags.limit;
  if (more) mails->erase(mails->begin(), mails->end() - static_cast<std::ptrdiff_t>(flags.limit));
  if (flags.json) {
    json::array items;
    for (const auto& mail : *mails) items.push_back(file_json(mail));
    print_json(json_list(std::move(items)));
    if (more) print_notice(kMoreWithoutCursor);
  } else if (mails->empty()) {
    fmt::print("no mails\n");
  } else {
    fmt::print("{}", mail_table(*mails, terminal_columns()));
    if (more) fmt::print("{}\n", kMoreWithoutCursor);
  }
  return kExitDone;
}

int show_file(const FileFlags& flags) {
  const auto mails = read_files(flags);
  if (!mails) return report(mails.error());
  const auto chosen = choose_mail(*mails, flags.name);
  if (!chosen) return report(chosen.error());
  if (flags.json) {
    print_json(file_json(*chosen));
  } else if (flags.html) {
    fmt::print("{}", chosen->mail.html);
  } else {
    FactList facts;
    facts.add("From", printable(chosen->mail.from));
    facts.add("To", printable(chosen->mail.to));
    facts.add("Subject", printable(chosen->mail.subject));
    facts.add("Date", printable(chosen->mail.date));
    facts.add("File", chosen->path.string());
    fmt::print("{}\n{}", facts.text(terminal_columns()), chosen->mail.text);
  }
  return kExitDone;
}

std::string log_table(const json::array& mails, std::size_t width) {
  TextTable table({{"CREATED (UTC)", 1},
                   "STATUS",
                   {"TO", 0, 16},
                   "CHANGE",
                   {"CHAIN", 5},
                   {"CONTRACT", 4},
                   {"FLOW", 3},
                   {"TRIES", 6},
                   {"ERROR", 2, 16}});
  for (const auto& mail : mails) {
    table.add({when(mail, "createdAt"), text_at(mail, "sendStatus"), text_at(mail, "email"),
               (text_at(mail, "kind") == "correction" ? "not " : "") + text_at(mail, "statusTo"),
               text_at(mail, "chainId"), short_hex(text_at(mail, "contractAddress")),
               short_hex(text_at(mail, "flowId")), text_at(mail, "retryCount"), shortened(text_at(mail, "error"), 60)});
  }
  return table.text(width);
}

int show_log(const LogFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    auto target = fmt::format("/api/v1/mails?limit={}", limit);
    add_parameter(target, "status", flags.status);
    add_parameter(target, "email", flags.email);
    add_parameter(target, "contract", flags.contract);
    add_parameter(target, "cursor", cursor);
    return target;
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no mails", log_table);
  return kExitDone;
}

int preview(const PreviewFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  auto target = find_flow_target(*api, flags.flow);
  if (!target) return report(target.error());
  *target += "/mail";
  add_parameter(*target, "status", flags.status);
  add_parameter(*target, "language", flags.language);
  add_parameter(*target, "correction", flags.correction ? "true" : "");
  add_parameter(*target, "format", flags.text ? "text" : "html");
  const auto page = api->get_file(*target);
  if (!page) return report(page.error());
  fmt::print("{}", page->body);
  return kExitDone;
}

void add_file_flags(CLI::App& command, FileFlags& flags) {
  command.add_option("--dir", flags.directory, "Directory of the mails (also FENCEPOST_EMAIL_DIRECTORY)");
  command.add_option("--data-dir", flags.data_dir, "Data directory of 'up', whose mails are in its folder mail")
      ->capture_default_str();
  add_json_flag(command, flags.json);
}

void add_files(CLI::App& mail, Run& run) {
  const auto list =
      add_verb<FileFlags>(mail, run, "list", "Show the mails that went to files, as under 'up'", list_files);
  list.command.add_option("--limit", list.flags->limit, "Largest number of mails to show: the newest")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  add_file_flags(list.command, *list.flags);

  const auto show = add_verb<FileFlags>(mail, run, "show", "Show one of these mails, as text or HTML", show_file);
  show.command.add_option("mail", show.flags->name, "The mail, as shown by list; the newest if not given");
  show.command.add_flag("--html", show.flags->html, "Print the HTML part");
  add_file_flags(show.command, *show.flags);
}

}  // namespace

void add_mail(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_files(noun, run);

  const auto log =
      add_verb<LogFlags>(noun, run, "log", "Show which mails about flows were sent, newest first", show_log);
  log.command.add_option("--status", log.flags->status, "Only mails in this status")
      ->check(CLI::IsMember({"pending", "success", "failed", "dead", "suppressed"}));
  log.command.add_option("--email", log.flags->email, "Only mails to this address");
  log.command.add_option("--contract", log.flags->contract, "Only mails about this timelock");
  add_page_flags(log.command, log.flags->page);
  add_api_flags(log.command, log.flags->api);
  add_json_flag(log.command, log.flags->json);

  const auto view = add_verb<PreviewFlags>(noun, run, "preview", "Print the mail about a flow, as HTML", preview);
  view.command.add_option("--flow", view.flags->flow.flow_id, "Id of the flow, as shown by timelock flows")->required();
  add_flow_choice(view.command, view.flags->flow);
  view.command.add_option("--status", view.flags->status, "The change that the mail reports")
      ->capture_default_str()
      ->check(CLI::IsMember({"waiting", "ready", "executed", "cancelled", "expired"}));
  view.command.add_option("--language", view.flags->language, "Language of the mail")
      ->capture_default_str()
      ->check(CLI::IsMember({"en", "zh"}));
  view.command.add_flag("--correction", view.flags->correction, "The mail that takes the change back after a reorg");
  view.command.add_flag("--text", view.flags->text, "The text part in place of the HTML part");
  add_api_flags(view.command, view.flags->api);
}

}  // namespace fencepost::cli
