#include "tests/support/nats_server.hpp"

#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <nats/nats.h>

#include "base/error.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kWaitMs = 5000;
constexpr int kFetch = 500;

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The port in "Listening for client connections on 127.0.0.1:41234", in a log that also says that the server is ready.
std::uint16_t announced_port(const std::string& log) {
  constexpr std::string_view kBefore = "Listening for client connections on 127.0.0.1:";
  const auto at = log.find(kBefore);
  std::uint16_t port = 0;
  if (at != std::string::npos && log.find("Server is ready") != std::string::npos) {
    std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
  }
  return port;
}

void check(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  throw Exception(unavailable("nats", fmt::format("{}: {}", what, natsStatus_GetText(status))));
}

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
template <class T, auto Destroy>
using Owned = std::unique_ptr<T, Destroyer<Destroy>>;

// A connection of a test, apart from the code under test.
struct Client {
  explicit Client(const std::string& url) {
    natsConnection* nc = nullptr;
    check(natsConnection_ConnectTo(&nc, url.c_str()), "connect");
    connection.reset(nc);
    jsCtx* js = nullptr;
    check(natsConnection_JetStream(&js, nc, nullptr), "JetStream");
    jetstream.reset(js);
  }
  Owned<natsConnection, natsConnection_Destroy> connection;
  Owned<jsCtx, jsCtx_Destroy> jetstream;
};

using StreamInfo = Owned<jsStreamInfo, jsStreamInfo_Destroy>;

// nullptr: there is no such stream.
StreamInfo info_of(const Client& client, const std::string& stream) {
  jsStreamInfo* info = nullptr;
  const auto status = js_GetStreamInfo(&info, client.jetstream.get(), stream.c_str(), nullptr, nullptr);
  if (status == NATS_NOT_FOUND) return nullptr;
  check(status, "stream info");
  return StreamInfo(info);
}

std::string header_of(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK && value != nullptr ? value : "";
}

StoredMessage to_stored(natsMsg* message) {
  return {.sequence = natsMsg_GetSequence(message),
          .subject = natsMsg_GetSubject(message),
          .id = header_of(message, "Nats-Msg-Id"),
          .content_type = header_of(message, "Content-Type"),
          .body = std::string(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message)))};
}

}  // namespace

NatsServer::NatsServer(NatsServerOptions options) : options_(std::move(options)) {
  start();
}

NatsServer::~NatsServer() {
  child_->stop_blocking({{SIGKILL, 0s}});
}

void NatsServer::start() {
  const auto config = dir_ / "nats.conf";
  const auto log_file = dir_ / "nats.log";
  std::ofstream out(config);
  out << "listen: \"127.0.0.1:" << (port_ == 0 ? "-1" : std::to_string(port_)) << "\"\n" << options_.config << '\n';
  if (options_.jetstream) out << "jetstream { store_dir: \"" << (dir_ / "store").string() << "\" }\n";
  out.close();
  std::filesystem::remove(log_file);
  auto child = ChildProcess::start(
      {.argv = {"nats-server", "-c", config}, .out = Output::file(log_file), .err = Output::same_as_out()});
  if (!child) throw Exception(child.error());
  child_ = std::move(*child);
  std::uint16_t port = 0;
  const bool up = eventually([&] {
    port = announced_port(log());
    return port != 0 || !child_->running();
  });
  if (!up || port == 0) throw Exception(unavailable("nats_failed", "nats-server does not start:\n" + log()));
  port_ = port;
}

std::string NatsServer::url() const {
  return fmt::format("nats://127.0.0.1:{}", port_);
}

std::string NatsServer::log() const {
  return read_all(dir_ / "nats.log");
}

void NatsServer::kill() {
  child_->signal(SIGKILL);
  child_->wait_blocking();
}

void NatsServer::restart() {
  start();
}

void NatsServer::suspend() {
  child_->signal(SIGSTOP);
}

void NatsServer::resume() {
  child_->signal(SIGCONT);
}

std::uint64_t NatsServer::message_count(const std::string& stream) const {
  const Client client(url());
  const auto info = info_of(client, stream);
  return info ? info->State.Msgs : 0;
}

std::vector<StoredMessage> NatsServer::messages(const std::string& stream) const {
  const Client client(url());
  const auto info = info_of(client, stream);
  const auto count = info ? info->State.Msgs : 0;
  std::vector<StoredMessage> out;
  if (count == 0) return out;

  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Stream = stream.c_str();
  options.Config.AckPolicy = js_AckNone;
  natsSubscription* raw = nullptr;
  check(js_PullSubscribe(&raw, client.jetstream.get(), ">", nullptr, nullptr, &options, nullptr), "subscribe");
  const Owned<natsSubscription, natsSubscription_Destroy> subscription(raw);
  while (out.size() < count) {
    natsMsgList list{};
    check(natsSubscription_Fetch(&list, raw, kFetch, kWaitMs, nullptr), "fetch");
    for (int i = 0; i < list.Count; ++i) out.push_back(to_stored(list.Msgs[i]));
    natsMsgList_Destroy(&list);
  }
  return out;
}

void NatsServer::add_stream(const std::string& stream, const std::vector<std::string>& subjects,
                            const NatsStreamLimits& limits) const {
  const Client client(url());
  std::vector<const char*> names;
  names.reserve(subjects.size());
  for (const auto& subject : subjects) names.push_back(subject.c_str());
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = stream.c_str();
  config.Subjects = names.data();
  config.SubjectsLen = static_cast<int>(names.size());
  config.Duplicates = std::chrono::nanoseconds(limits.duplicate_window).count();
  config.MaxMsgSize = limits.max_message_bytes;
  jsStreamInfo* info = nullptr;
  check(js_AddStream(&info, client.jetstream.get(), &config, nullptr, nullptr), "add stream");
  jsStreamInfo_Destroy(info);
}

void NatsServer::delete_stream(const std::string& stream) const {
  const Client client(url());
  check(js_DeleteStream(client.jetstream.get(), stream.c_str(), nullptr, nullptr), "delete stream");
}

std::vector<std::string> NatsServer::subjects_of(const std::string& stream) const {
  const Client client(url());
  const auto info = info_of(client, stream);
  std::vector<std::string> out;
  for (int i = 0; info && i < info->Config->SubjectsLen; ++i) out.emplace_back(info->Config->Subjects[i]);
  return out;
}

void NatsServer::publish(const std::string& subject, const std::string& body) const {
  const Client client(url());
  check(js_Publish(nullptr, client.jetstream.get(), subject.c_str(), body.data(), static_cast<int>(body.size()),
                   nullptr, nullptr),
        "publish");
}

}  // namespace fencepost::test
