// Measures how fast mail leaves a node, to smtp-sink of Postfix on the same machine.
//
//   mail_bench send
//
// send   mails of about 6 kB through the SMTP transport with its default options. The floor is a client that makes only
//        the system calls of the same dialogue, with as many connections.
//
// Both sides of a comparison take turns: ROUNDS times (default 3) for SECONDS_PER_ROUND (default 5) each. The result is
// the median. The exit code is 3 if a bar is missed.
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <signal.h>

#include "notify/transport/smtp_transport.hpp"
#include "runtime/gather.hpp"
#include "runtime/runtime.hpp"

#include "bench/raw_smtp_client.hpp"
#include "bench/rounds.hpp"
#include "bench/smtp_sink.hpp"

namespace {

using namespace fencepost;
using bench::RawSmtpClient;
using bench::SmtpSink;
using notify::Mail;
using Steady = std::chrono::steady_clock;

constexpr double kSendBar = 500;  // mails per second

// As large as a mail about a flow with a few calls.
Mail mail_number(std::uint64_t number) {
  std::string text;
  std::string html = "<table>\n";
  for (int i = 0; i < 19; ++i) {
    text += fmt::format(
        "Call {}: transfer(address,uint256) of 0xf39fd6e51aad88f6f4ce6ab8827279cfffb922{:02x}, paid: 0\n", i, i);
    html += fmt::format(
        "<tr><td style=\"padding: 4px 12px\">Call {}</td><td>transfer(address,uint256)</td>"
        "<td><code>0xf39fd6e51aad88f6f4ce6ab8827279cfffb922{:02x}</code></td><td>paid: 0</td></tr>\n",
        i, i);
  }
  return {.message_id = fmt::format("{}@fencepost.example.org", number),
          .from = "no-reply@example.org",
          .to = fmt::format("user{}@example.org", number % 1000),
          .subject = fmt::format("Flow {} is ready", number),
          .text = std::move(text),
          .html = html + "</table>\n",
          .unsubscribe_url = "https://fencepost.example.org/unsubscribe?token=" + std::string(64, 'a'),
          .date = *parse_rfc3339("2026-11-18T08:30:01.123456Z")};
}

double rate(std::uint64_t count, Steady::time_point begin) {
  return static_cast<double>(count) / std::chrono::duration<double>(Steady::now() - begin).count();
}

bool report(std::string_view name, double value, double floor, double bar) {
  const bool reached = value >= bar;
  fmt::print("{:<30} {:8.0f} mails/s (bar {:.0f}) {}   floor {:8.0f}   ratio {:.2f}\n", name, value, bar,
             reached ? "reached" : "MISSED", floor, value / floor);
  return reached;
}

// --- send -------------------------------------------------------------------------------------------------------

// One lane of a sender: a mail after the other.
awaitable<std::uint64_t> lane(notify::MailTransport& transport, Steady::time_point end) {
  std::uint64_t sent = 0;
  while (Steady::now() < end) {
    auto mail = mail_number(sent);
    const auto outcome = co_await transport.send(std::move(mail));
    if (outcome.result != notify::SendResult::kSent) throw Exception(unavailable("not_sent", outcome.detail));
    ++sent;
  }
  co_return sent;
}

double transport_rate(notify::MailTransport& transport, std::chrono::seconds time) {
  const auto begin = Steady::now();
  std::vector<awaitable<std::uint64_t>> lanes;
  for (std::size_t i = 0; i < transport.connections(); ++i) lanes.push_back(lane(transport, begin + time));
  std::uint64_t sent = 0;
  for (const auto count : run_blocking(gather(std::move(lanes)))) sent += count;
  return rate(sent, begin);
}

double raw_rate(const SmtpSink& sink, std::size_t connections, std::chrono::seconds time) {
  const auto mail = mail_number(0);
  const auto body = to_eml(mail) + ".\r\n";  // no line of it begins with a dot
  std::vector<std::unique_ptr<RawSmtpClient>> clients;
  for (std::size_t i = 0; i < connections; ++i) clients.push_back(std::make_unique<RawSmtpClient>(sink.port()));
  const auto begin = Steady::now();
  std::atomic<std::uint64_t> sent = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& client : clients) {
      threads.emplace_back([&sent, &client, &mail, &body, end = begin + time] {
        for (; Steady::now() < end; ++sent) client->send(mail.from, mail.to, body);
      });
    }
  }
  return rate(sent, begin);
}

bool bench_send() {
  const SmtpSink sink;
  notify::EmailOptions options;
  options.smtp_url = sink.url();
  notify::SmtpTransport transport(options);
  std::vector<double> ours;
  std::vector<double> raw;
  for (int i = 0; i < bench::rounds(); ++i) {
    ours.push_back(transport_rate(transport, bench::time_per_round()));
    raw.push_back(raw_rate(sink, transport.connections(), bench::time_per_round()));
  }
  fmt::print("mails of {} bytes over {} connections\n", to_eml(mail_number(0)).size(), transport.connections());
  return report("mail-send", bench::median(ours), bench::median(raw), kSendBar);
}

int run(const std::vector<std::string_view>& wanted) {
  if (wanted.size() != 1 || wanted.front() != "send") {
    fmt::print(stderr, "usage: mail_bench send\n");
    return 2;
  }
  return bench_send() ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    ::signal(SIGPIPE, SIG_IGN);
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "mail_bench: {}\n", e.what());
    return 1;
  }
}
