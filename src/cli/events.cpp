// `fencepost events`: prints events as they happen.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/json.hpp"
#include "http/sse_reader.hpp"
#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

// The server sends a comment every 15 s when nothing happens.
constexpr std::chrono::seconds kSilence{60};
constexpr std::chrono::seconds kReconnectAfter{1};
constexpr int kMaxReconnects = 60;  // in a row

struct EventsFlags {
  ApiFlags api;
  std::vector<std::string> types, subjects, chains, signers, contracts, guilds;
  std::string after;
  bool no_follow = false;
  bool json = false;
};

std::string joined(const std::vector<std::string>& values) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ",") + http::percent_encode(value);
  return out;
}

std::string events_target(const EventsFlags& flags, const std::string& position) {
  std::string target = fmt::format("/api/v1/events?follow={}", !flags.no_follow);
  const auto add = [&](std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) target += fmt::format("&{}={}", name, joined(values));
  };
  add("type", flags.types);
  add("subject", flags.subjects);
  add("chain", flags.chains);
  add("signer", flags.signers);
  add("contract", flags.contracts);
  add("guild", flags.guilds);
  if (!position.empty()) target += "&lastEventId=" + http::percent_encode(position);
  return target;
}

// "2026-11-17 19:45:19.123  118  TxSubmitted       tx/0193…  {"nonce": 7, …}"
std::string event_line(const std::string& envelope) {
  boost::system::error_code ec;
  const auto event = boost::json::parse(envelope, ec);
  if (ec) return printable(envelope);
  const auto* data = find_at(event, "data");
  return fmt::format("{}  {:>8}  {:<18}  {}  {}", when(event, "time", kToMilliseconds), text_at(event, "id"),
                     text_at(event, "type"), text_at(event, "subject"),
                     data != nullptr ? printable(serialize(*data)) : "");
}

int print_events(const EventsFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  std::string position = flags.after;
  int lost = 0;
  http::SseReader reader(
      [&](const http::SseReader::Message& message) {
        lost = 0;
        position = message.id;
        if (message.data.empty()) return;
        fmt::print("{}\n", flags.json ? message.data : shortened(event_line(message.data), terminal_columns()));
        std::fflush(stdout);
      },
      [](std::string_view comment) {
        if (comment != "keep-alive") print_notice(printable(comment));
      });
  for (;;) {
    const auto ended = api->stream(events_target(flags, position), kSilence,
                                   [&](std::string_view piece) { return reader.feed(piece); });
    if (ended && flags.no_follow) return kExitDone;
    if (!ended && ended.error().kind != ErrorKind::kUnavailable && ended.error().kind != ErrorKind::kTimeout) {
      return report(ended.error());
    }
    if (++lost > kMaxReconnects) {
      return report(ended ? unavailable("stream_ended", "the server ends every stream at once") : ended.error());
    }
    if (lost == 1) print_notice("the stream has ended; resuming");
    std::this_thread::sleep_for(kReconnectAfter);
  }
}

}  // namespace

void add_events(CLI::App& noun, Run& run) {
  const auto flags = on_parsed<EventsFlags>(noun, run, print_events);
  add_api_flags(noun, flags->api);
  add_json_flag(noun, flags->json);
  noun.add_option("--type", flags->types, "Only these types, such as TxConfirmed; may be repeated");
  noun.add_option("--signer", flags->signers, "Only transactions of these signers");
  noun.add_option("--subject", flags->subjects, "Only these subjects, such as tx/<txId>");
  noun.add_option("--contract", flags->contracts, "Only flows of these timelock contracts");
  noun.add_option("--guild", flags->guilds, "Only transfers of these guilds");
  noun.add_option("--chain", flags->chains, "Only these chain ids");
  noun.add_option("--after", flags->after, "Begin after the event with this id; 0: with the oldest. Default: now");
  noun.add_flag("--no-follow", flags->no_follow, "End when the end of the log is reached");
}

}  // namespace fencepost::cli
