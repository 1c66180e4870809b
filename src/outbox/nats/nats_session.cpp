#include "outbox/nats/nats_session.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/duration_text.hpp"

namespace fencepost::outbox {
namespace {

constexpr std::size_t kMostLookedBack = 2 * kNatsMaxBatch;

NatsProblem unreachable_because(natsStatus status) {
  return {NatsFailure::kUnreachable, fmt::format("cannot connect: {}", nats::reason_of(status))};
}

// Collects the first failure of a sequence of calls.
class Steps {
 public:
  void add(natsStatus status) {
    if (status_ == NATS_OK) status_ = status;
  }
  natsStatus status() const { return status_; }

 private:
  natsStatus status_ = NATS_OK;
};

bool wants_tls(const NatsOptions& options) {
  return !options.tls_ca_path.empty() || !options.tls_certificate_path.empty();
}

natsStatus apply_options(natsOptions* to, const NatsOptions& options) {
  std::vector<std::string> urls;
  urls.reserve(options.urls.size());
  for (const auto& url : options.urls) urls.emplace_back(url.reveal());
  std::vector<const char*> servers;
  servers.reserve(urls.size());
  for (const auto& url : urls) servers.push_back(url.c_str());
  const auto timeout_ms = options.timeout.count();

  Steps steps;
  steps.add(natsOptions_SetServers(to, servers.data(), static_cast<int>(servers.size())));
  steps.add(natsOptions_SetName(to, "fencepost"));
  steps.add(natsOptions_SetTimeout(to, timeout_ms));
  steps.add(natsOptions_SetWriteDeadline(to, timeout_ms));
  steps.add(natsOptions_SetPingInterval(to, timeout_ms));
  steps.add(natsOptions_SetAllowReconnect(to, false));
  steps.add(natsOptions_SetFailRequestsOnDisconnect(to, true));
  steps.add(natsOptions_SetMaxPendingMsgs(to, static_cast<int>(2 * kNatsMaxBatch)));
  if (!options.credentials_path.empty()) {
    steps.add(natsOptions_SetUserCredentialsFromFiles(to, options.credentials_path.c_str(), nullptr));
  }
  if (wants_tls(options)) steps.add(natsOptions_SetSecure(to, true));
  if (!options.tls_ca_path.empty()) {
    steps.add(natsOptions_LoadCATrustedCertificates(to, options.tls_ca_path.c_str()));
  }
  if (!options.tls_certificate_path.empty()) {
    steps.add(
        natsOptions_LoadCertificatesChain(to, options.tls_certificate_path.c_str(), options.tls_key_path.c_str()));
  }
  for (auto& url : urls) static_cast<void>(Secret::take(std::move(url)));
  return steps.status();
}

NatsResult<nats::Connection> connect(const NatsOptions& options) {
  natsOptions* raw_options = nullptr;
  auto status = natsOptions_Create(&raw_options);
  const nats::Options settings(raw_options);
  if (status == NATS_OK) status = apply_options(settings.get(), options);
  if (status != NATS_OK) return std::unexpected(unreachable_because(status));
  natsConnection* raw = nullptr;
  status = natsConnection_Connect(&raw, settings.get());
  if (status != NATS_OK) return std::unexpected(unreachable_because(status));
  return nats::Connection(raw);
}

// The number after the last dot; 0 if there is none.
std::uint64_t ticket_of(std::string_view subject) {
  const auto digits = subject.substr(subject.rfind('.') + 1);
  std::uint64_t ticket = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ticket);
  return ticket;
}

using SharedAcks = std::shared_ptr<NatsAcks>;

// On libnats's thread. `closure` is a SharedAcks of this subscription.
void on_answer(natsConnection*, natsSubscription*, natsMsg* raw, void* closure) {
  const nats::Message message(raw);
  const auto ticket = ticket_of(natsMsg_GetSubject(raw));
  auto& acks = **static_cast<SharedAcks*>(closure);
  if (natsMsg_IsNoResponders(raw)) {
    acks.receive(ticket, std::unexpected(NatsRefusal{0, "no stream takes this subject, or its leader is away"}));
    return;
  }
  const std::string_view text(natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw)));
  acks.receive(ticket, parse_nats_ack(text));
}

// On libnats's thread, after the last on_answer of the subscription.
void on_subscription_over(void* closure) {
  const std::unique_ptr<SharedAcks> owned(static_cast<SharedAcks*>(closure));
}

}  // namespace

NatsSession::NatsSession(NatsOptions options, nats::Connection connection, SharedAcks acks)
    : options_(std::move(options)), connection_(std::move(connection)), acks_(std::move(acks)) {}

NatsSession::~NatsSession() {
  answers_.reset();
  jetstream_.reset();
  natsConnection_Close(connection_.get());
}

NatsResult<std::unique_ptr<NatsSession>> NatsSession::open(const NatsOptions& options, SharedAcks acks,
                                                           IfMissing if_missing) {
  auto connection = connect(options);
  if (!connection) return std::unexpected(std::move(connection).error());
  std::unique_ptr<NatsSession> session(new NatsSession(options, std::move(*connection), std::move(acks)));
  jsOptions settings;
  jsOptions_Init(&settings);
  settings.Wait = options.timeout.count();
  jsCtx* jetstream = nullptr;
  const auto status = natsConnection_JetStream(&jetstream, session->connection_.get(), &settings);
  session->jetstream_.reset(jetstream);
  if (status != NATS_OK) return std::unexpected(unreachable_because(status));
  auto stream = find_nats_stream(*jetstream, options, if_missing);
  if (!stream) return std::unexpected(std::move(stream).error());
  session->stream_ = *stream;
  if (auto listening = session->listen_for_acks(); !listening) return std::unexpected(std::move(listening).error());
  return session;
}

NatsResult<void> NatsSession::listen_for_acks() {
  natsInbox* inbox = nullptr;
  auto status = natsInbox_Create(&inbox);
  if (status != NATS_OK) return std::unexpected(unreachable_because(status));
  inbox_ = inbox;
  natsInbox_Destroy(inbox);
  auto closure = std::make_unique<SharedAcks>(acks_);
  natsSubscription* raw = nullptr;
  status = natsConnection_Subscribe(&raw, connection_.get(), (inbox_ + ".*").c_str(), on_answer, closure.get());
  answers_.reset(raw);
  if (status == NATS_OK) status = natsSubscription_SetOnCompleteCB(raw, on_subscription_over, closure.get());
  if (status == NATS_OK) {
    closure.release();  // NOLINT(bugprone-unused-return-value): on_subscription_over owns it now
    return {};
  }
  // A subscription that was made may still call back, so its closure must stay.
  if (raw != nullptr) closure.release();  // NOLINT(bugprone-unused-return-value)
  return std::unexpected(unreachable_because(status));
}

bool NatsSession::usable() const {
  return !broken_ && !natsConnection_IsClosed(connection_.get());
}

// How many messages at the front the stream has already. Also learns the stream's last sequence.
NatsResult<std::size_t> NatsSession::find_stored(std::span<const NatsMessage> messages) {
  auto stream = find_nats_stream(*jetstream_, options_, IfMissing::kCreate);
  if (!stream) return std::unexpected(std::move(stream).error());
  stream_ = *stream;
  const auto oldest = stream_.last_sequence - std::min<std::uint64_t>(stream_.last_sequence, kMostLookedBack);
  for (auto sequence = stream_.messages == 0 ? 0 : stream_.last_sequence; sequence > oldest; --sequence) {
    const auto id = nats_message_id_at(*jetstream_, options_, sequence);
    if (!id) return std::unexpected(id.error());
    const auto found = std::ranges::find(messages, *id, &NatsMessage::id);
    if (found != messages.end()) return static_cast<std::size_t>(found - messages.begin()) + 1;
    if (const auto seq = seq_in_message_id(*id); seq && *seq < messages.front().seq) break;
  }
  return 0;
}

NatsPublished NatsSession::publish(std::span<const NatsMessage> messages) {
  std::size_t stored = 0;
  if (!in_step_) {
    const auto found = find_stored(messages);
    if (!found) {
      broken_ = broken_ || found.error().kind == NatsFailure::kUnreachable;
      return {.problem = found.error()};
    }
    stored = *found;
    // When the stream has them all, it may have the next ones too: look again.
    if (stored == messages.size()) return {.stored = stored, .repeats = stored};
    in_step_ = true;
  }
  auto published = publish_new(messages.subspan(stored));
  published.stored += stored;
  published.repeats += stored;
  return published;
}

NatsPublished NatsSession::publish_new(std::span<const NatsMessage> messages) {
  const auto ticket = acks_->begin(messages.size());
  std::optional<NatsProblem> unsent;
  std::size_t sent = 0;
  while (sent < messages.size() && !unsent && !acks_->refused() && !acks_->interrupted()) {
    const auto* const before = sent == 0 ? nullptr : &messages[sent - 1];
    if (auto done = send(messages[sent], before, ticket + sent); !done) {
      unsent = std::move(done).error();
    } else {
      ++sent;
    }
  }
  const auto answers =
      acks_->wait(sent, options_.timeout, [this] { return natsConnection_IsClosed(connection_.get()); });
  // An answer that is missing may still come, and its message may still be stored.
  const auto is_missing = [](const auto& answer) { return !answer.has_value(); };
  if (std::any_of(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(sent), is_missing)) broken_ = true;
  return count(answers, std::move(unsent));
}

NatsResult<void> NatsSession::send(const NatsMessage& message, const NatsMessage* before, std::uint64_t ticket) {
  natsMsg* raw = nullptr;
  Steps steps;
  steps.add(natsMsg_Create(&raw, message.subject.c_str(), fmt::format("{}.{}", inbox_, ticket).c_str(),
                           message.body.data(), static_cast<int>(message.body.size())));
  const nats::Message owned(raw);
  const auto header = [&](const char* name, const std::string& value) {
    if (steps.status() == NATS_OK) steps.add(natsMsgHeader_Set(raw, name, value.c_str()));
  };
  header("Content-Type", "application/cloudevents+json");
  header("Nats-Msg-Id", message.id);
  header("Nats-Expected-Stream", options_.stream);
  if (before != nullptr) {
    header("Nats-Expected-Last-Msg-Id", before->id);
  } else {
    header("Nats-Expected-Last-Sequence", fmt::format("{}", stream_.last_sequence));
  }
  if (steps.status() == NATS_OK) steps.add(natsConnection_PublishMsg(connection_.get(), raw));
  if (steps.status() == NATS_OK) return {};
  if (steps.status() == NATS_MAX_PAYLOAD) {
    return std::unexpected(NatsProblem{
        NatsFailure::kRefused,
        fmt::format("event {} has {} bytes, and the server takes at most {}; raise the server's max_payload",
                    message.seq, message.body.size(), natsConnection_GetMaxPayload(connection_.get()))});
  }
  broken_ = true;
  return std::unexpected(NatsProblem{NatsFailure::kUnreachable,
                                     fmt::format("the connection was lost: {}", nats::reason_of(steps.status()))});
}

// Counts the messages at the front that are stored, and finds out why the next one is not.
NatsPublished NatsSession::count(const std::vector<std::optional<NatsAcks::Answer>>& answers,
                                 std::optional<NatsProblem> unsent) {
  NatsPublished out;
  for (const auto& answer : answers) {
    if (!answer || !*answer) break;
    ++out.stored;
    out.repeats += (*answer)->duplicate ? 1 : 0;
    stream_.last_sequence = std::max(stream_.last_sequence, (*answer)->sequence);
  }
  if (out.stored == answers.size()) return out;
  in_step_ = false;
  const auto& failed = answers[out.stored];
  if (failed) {
    const auto& refusal = failed->error();
    out.again = refusal.out_of_step() && usable();
    out.problem = {NatsFailure::kRefused, refusal.code == 0
                                              ? refusal.text
                                              : fmt::format("{} (JetStream error {})", refusal.text, refusal.code)};
  } else if (unsent) {
    out.problem = std::move(unsent);
  } else if (natsConnection_IsClosed(connection_.get())) {
    out.problem = {NatsFailure::kUnreachable, "the connection was lost before all messages were acknowledged"};
  } else {
    out.problem = {NatsFailure::kTimeout,
                   fmt::format("a message was not acknowledged within {}", duration_text(options_.timeout))};
  }
  return out;
}

}  // namespace fencepost::outbox
