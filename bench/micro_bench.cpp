// Times pure functions of hot paths, one at a time: run it before and after a change to them.
#include <algorithm>
#include <random>

#include <benchmark/benchmark.h>

#include "base/clock.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"
#include "http/router.hpp"
#include "pg/params.hpp"
#include "timelock/model/fold.hpp"

namespace {

using namespace fencepost;

void uuid_v7(benchmark::State& state) {
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids(clock, random);
  for (auto _ : state) benchmark::DoNotOptimize(ids.next());
}
BENCHMARK(uuid_v7);

void uuid_to_text_and_back(benchmark::State& state) {
  SystemClock clock;
  SystemRandom random;
  const auto id = UuidGenerator(clock, random).next();
  for (auto _ : state) benchmark::DoNotOptimize(Uuid::parse(id.to_string()));
}
BENCHMARK(uuid_to_text_and_back);

void hex_of_a_hash_and_back(benchmark::State& state) {
  std::array<std::uint8_t, 32> hash{};
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = static_cast<std::uint8_t>(i * 37);
  for (auto _ : state) {
    const auto text = to_hex0x(hash);
    benchmark::DoNotOptimize(from_hex0x_fixed<32>(text));
  }
}
BENCHMARK(hex_of_a_hash_and_back);

constexpr std::string_view kBody = R"({"requestId":"0197a3c4-6d1e-7b62-9f3e-2f1d5a7c9b10","chainId":31337,
  "signer":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  "payload":{"to":"0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","value":"1000000000000000000","data":"0x"}})";

void json_request(benchmark::State& state) {
  for (auto _ : state) {
    const auto document = parse_json(kBody, 1 << 20);
    const JsonReader in(*document);
    in.reject_unknown({"requestId", "chainId", "signer", "payload"});
    benchmark::DoNotOptimize(in.field("requestId").uuid());
    benchmark::DoNotOptimize(in.field("chainId").int64(1));
    benchmark::DoNotOptimize(in.field("signer").string());
    benchmark::DoNotOptimize(in.field("payload").field("value").uint256_text());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBody.size()));
}
BENCHMARK(json_request);

void router_lookup(benchmark::State& state) {
  http::Router router;
  const auto handler = [](http::Request&) -> awaitable<http::Response> { co_return http::Response(); };
  for (const char* noun : {"tx", "signer", "timelock", "flow", "mail", "transfer", "guild", "apikey"}) {
    router.add({http::Verb::kGet, fmt::format("/api/v1/{}", noun), http::Access::open(), handler});
    router.add({http::Verb::kPost, fmt::format("/api/v1/{}", noun), http::Access::open(), handler});
    router.add({http::Verb::kGet, fmt::format("/api/v1/{}/{{id:uuid}}", noun), http::Access::open(), handler});
    router.add({http::Verb::kPost, fmt::format("/api/v1/{}/{{id:uuid}}/cancel", noun), http::Access::open(), handler});
  }
  http::Request request;
  for (auto _ : state) {
    request.reset();
    request.set_method("POST");
    benchmark::DoNotOptimize(request.set_target("/api/v1/transfer/0197a3c4-6d1e-7b62-9f3e-2f1d5a7c9b10/cancel"));
    benchmark::DoNotOptimize(router.match(request));
  }
}
BENCHMARK(router_lookup);

// The parameters of an INSERT … SELECT * FROM unnest($1, $2, $3, $4) of a thousand rows.
void params_of_a_thousand_rows(benchmark::State& state) {
  constexpr std::size_t kRows = 1000;
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids(clock, random);
  std::vector<Uuid> id;
  std::vector<std::int64_t> nonce;
  std::vector<std::string> signer;
  std::vector<std::optional<TimePoint>> due;
  for (std::size_t i = 0; i < kRows; ++i) {
    id.push_back(ids.next());
    nonce.push_back(static_cast<std::int64_t>(i));
    signer.emplace_back("0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
    due.push_back(i % 3 == 0 ? std::nullopt : std::optional(clock.now()));
  }
  pg::Params::Wire wire;
  for (auto _ : state) {
    const auto params = pg::Params::of(id, nonce, signer, due);
    params.to_wire(wire);
    benchmark::DoNotOptimize(wire.values.data());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
}
BENCHMARK(params_of_a_thousand_rows);

// One flow with a thousand events in random order: scheduled and cancelled again and again, in batches of eight calls.
void fold_of_a_thousand_events(benchmark::State& state) {
  constexpr std::int64_t kEvents = 1000;
  constexpr std::int64_t kCalls = 8;
  std::vector<timelock::RawEvent> events;
  for (std::int64_t i = 0; i < kEvents; ++i) {
    const auto block = i / (kCalls + 1);
    const auto index = i % (kCalls + 1);
    auto& event = events.emplace_back(timelock::RawEvent{.standard = timelock::Standard::kOpenZeppelin});
    event.type = index == kCalls ? timelock::EventType::kCancelled : timelock::EventType::kCallScheduled;
    event.position = {block, index};
    event.block_hash = fmt::format("0x{:064x}", block);
    event.tx_hash = event.block_hash;
    event.block_timestamp = 1'700'000'000 + block;
    if (index == kCalls) continue;
    event.call = {.index = index, .target = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", .data = "0x8456cb59"};
    event.delay = 172'800;
  }
  std::ranges::shuffle(events, std::mt19937_64(1));
  for (auto _ : state) benchmark::DoNotOptimize(timelock::fold(events));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kEvents);
}
BENCHMARK(fold_of_a_thousand_events);

}  // namespace

BENCHMARK_MAIN();
