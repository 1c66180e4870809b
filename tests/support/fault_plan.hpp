// The faults of a run, derived from a seed: what happens, to whom, when and for how long.
//
// Each kind comes once before any comes again, so that a short run has all of them.
//
// Three kinds of faults: an endpoint lies (each node has its own endpoints), a node or its database sessions suffer,
// the chain changes. An endpoint tells one lie at a time, and a node has one fault at a time; at least one node runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/name_table.hpp"

namespace fencepost::test {

enum class FaultKind {
  kNullReceipts,
  kNullTransactions,
  kForgedReceipts,
  kStaleHead,
  kInventedHead,
  kWrongChain,
  kNoBaseFee,
  kTruncatedBatches,
  kRefusedBatches,
  kDown,
  kHeldCalls,
  kDroppedBroadcasts,
  kLostAnswers,
  kRefusedBroadcasts,
  kInvalidBroadcasts,
  kCensorship,
  kLowNonces,
  kKill,
  kPause,
  kRestart,
  kLostSessions,
  kReorg,
  kDroppedPool,
};

inline constexpr auto kFaultKinds = name_table<FaultKind>({
    {FaultKind::kNullReceipts, "null receipts", "Receipts are null."},
    {FaultKind::kNullTransactions, "null transactions", "Receipts and transactions are null."},
    {FaultKind::kForgedReceipts, "forged receipts", "Every transaction is in some block of the chain."},
    {FaultKind::kStaleHead, "stale head", "Knows no block above an old one."},
    {FaultKind::kInventedHead, "invented head", "Names a head far above the chain's, without having its blocks."},
    {FaultKind::kWrongChain, "wrong chain", "Fails, and comes back with another chain's id."},
    {FaultKind::kNoBaseFee, "no base fee", "Blocks have no base fee, and there is no fee history."},
    {FaultKind::kTruncatedBatches, "truncated batches", "Answers only the first calls of a batch."},
    {FaultKind::kRefusedBatches, "refused batches", "Refuses batches."},
    {FaultKind::kDown, "down", "Answers HTTP 503."},
    {FaultKind::kHeldCalls, "held calls", "Does not answer some methods until the end."},
    {FaultKind::kDroppedBroadcasts, "dropped broadcasts", "Accepts broadcasts and drops them."},
    {FaultKind::kLostAnswers, "lost answers", "Takes broadcasts and answers that something went wrong."},
    {FaultKind::kRefusedBroadcasts, "refused broadcasts", "Refuses broadcasts: its pool is full."},
    {FaultKind::kInvalidBroadcasts, "invalid broadcasts", "Refuses broadcasts for good, and may have taken them."},
    {FaultKind::kCensorship, "censorship", "Names a head far above the chain's, and refuses broadcasts for good."},
    {FaultKind::kLowNonces, "low nonces", "Counts fewer transactions of an account than there are."},
    {FaultKind::kKill, "kill", "SIGKILL, and a start later."},
    {FaultKind::kPause, "pause", "SIGSTOP for longer than the lease."},
    {FaultKind::kRestart, "restart", "SIGTERM, and a start."},
    {FaultKind::kLostSessions, "lost sessions", "The database ends the node's sessions."},
    {FaultKind::kReorg, "reorg", "The newest blocks are replaced by empty ones."},
    {FaultKind::kDroppedPool, "dropped pool", "The chain forgets transactions of its pool."},
});

inline constexpr bool is_lie(FaultKind kind) {
  return kind < FaultKind::kKill;
}
// A transaction that all endpoints refuse for good ends, so only one endpoint of a node does so at a time.
inline constexpr bool refuses_for_good(FaultKind kind) {
  return kind == FaultKind::kInvalidBroadcasts || kind == FaultKind::kCensorship;
}
inline constexpr bool is_of_a_node(FaultKind kind) {
  return kind >= FaultKind::kKill && kind < FaultKind::kReorg;
}

struct PlannedFault {
  std::chrono::milliseconds at;
  FaultKind kind;
  std::size_t node = 0;
  std::size_t endpoint = 0;            // of that node
  std::chrono::milliseconds lasts{0};  // none: it is over at once
  std::int64_t amount = 0;             // blocks, or calls
};

struct FaultPlanOptions {
  std::uint64_t seed = 1;
  std::chrono::milliseconds lasts;
  std::size_t nodes = 3;
  std::size_t endpoints = 3;                // of each node
  std::chrono::milliseconds longest_lease;  // a pause is longer than that
  std::int64_t deepest_reorg = 3;
};

// In order of time.
std::vector<PlannedFault> plan_faults(const FaultPlanOptions& options);

// "12.3 s  node 1 endpoint 0: null receipts for 4.2 s".
std::string to_text(const PlannedFault& fault);

}  // namespace fencepost::test
