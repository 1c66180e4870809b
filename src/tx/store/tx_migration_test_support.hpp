// A database at migration 0008, the schema before tx_open, with transactions in every state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/uuid.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/migrate_to.hpp"
#include "tests/support/postgres.hpp"
#include "tx/model/lease.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

class TxMigration : public ::testing::Test {
 protected:
  using Session = interleaving::Session;
  using Rows = std::map<std::string, std::string>;

  static constexpr int kBefore = 8;
  static constexpr int kAfter = 10;
  static constexpr int kNewest = 1'000'000;  // the code that the tests call needs the newest schema
  static constexpr std::int64_t kChainA = 31337;
  static constexpr std::int64_t kChainB = 10;
  static constexpr std::int64_t kOldToken = 7;

  static SignerKey key(std::int64_t chain, int number) { return {chain, fmt::format("0x{:040x}", number)}; }
  inline static const SignerKey kMixed = key(kChainA, 1);  // has a transaction in every state
  inline static const SignerKey kShared = key(kChainA, 2);
  inline static const SignerKey kMined = key(kChainA, 3);  // every nonce is mined
  inline static const SignerKey kUnseeded = key(kChainA, 4);
  inline static const SignerKey kReconcile = key(kChainB, 5);
  inline static const SignerKey kTwin = key(kChainB, 1);  // the address of kMixed on another chain
  inline static const SignerKey kIdle = key(kChainB, 6);  // no node leads it

  TxMigration() { test::migrate_to(db.dsn(), kBefore); }

  void migrate() {
    test::migrate_to(db.dsn(), kAfter);
    test::migrate_to(db.dsn(), kNewest);
    admin = Session(db.dsn(), "admin");  // prepares its statements again, for the new columns
  }

  static std::string hash(std::int64_t number) { return fmt::format("0x{:064x}", number); }

  void lease(const SignerKey& signer, const std::string& cursor_columns, const std::string& cursor_values) {
    admin.must(
        "INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at) "
        "VALUES ($1, $2, 'old', $3, clock_timestamp() + interval '1 h')",
        pg::Params::of(signer.chain_id, signer.signer, kOldToken));
    admin.must(
        fmt::format("INSERT INTO signer_nonce_cursor (chain_id, signer, fencing_token, {}) VALUES ($1, $2, 7, {})",
                    cursor_columns, cursor_values),
        pg::Params::of(signer.chain_id, signer.signer));
  }

  // Adds a transaction that waits, and its history. `name` is its request id.
  Uuid waiting(const std::string& name, const SignerKey& signer, std::int64_t creation_seq) {
    const auto number = static_cast<int>(ids.size()) + 1;
    const auto id = Uuid::parse(fmt::format("01900000-0000-7000-8000-{:012x}", number)).value();
    ids[name] = id;
    admin.must(
        "INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, payload, payload_hash, gas_limit, "
        "                        state, fencing_token, created_at, updated_at) "
        "SELECT $1, $2, $3, $4, $5, jsonb_build_object('to', $4::text), sha256($4::text::bytea), 21000 + $6, "
        "       'CREATED', 7, at, at "
        "  FROM (SELECT timestamptz '2026-10-30Z' + $6::int * interval '1 h' AS at) AS x",
        pg::Params::of(id, signer.chain_id, signer.signer, name, creation_seq, std::int64_t{number}));
    log(id, "CREATED", "accepted");
    return id;
  }

  // Adds a transaction that has a nonce. `values`: further assignments of the SET clause.
  void numbered(const std::string& name, const SignerKey& signer, std::int64_t creation_seq, std::int64_t nonce,
                const std::string& state, const std::string& values) {
    const auto id = waiting(name, signer, creation_seq);
    admin
        .must(
            fmt::format("UPDATE managed_tx SET nonce = {}, state = '{}', updated_at = created_at + interval '50 min', "
                        "{} WHERE tx_id = $1 RETURNING 1",
                        nonce, state, values),
            pg::Params::of(id))
        .one();
    log(id, state, "moved");
  }

  // The assignments of a broadcast attempt and of a receipt.
  static std::string sent(std::int64_t number) {
    return fmt::format(
        "tx_hash = '{}', first_submitted_at = created_at + interval '1 min', last_submit_at = created_at + "
        "interval '2 min', next_resubmit_at = created_at + interval '3 min', last_receipt_check = created_at + "
        "interval '4 min'",
        hash(number));
  }
  static std::string mined(std::int64_t block, std::string_view status = "0x1") {
    return fmt::format(
        "receipt = '{{\"status\": \"{}\", \"block\": {}}}', receipt_block = {}, receipt_hash = '{}', "
        "receipt_changed_at = created_at + interval '5 min', told_block = {}, told_hash = '{}'",
        status, block, block, hash(block), block + 1, hash(block + 1));
  }
  static std::string ended(std::string_view sub_state = "") {
    return fmt::format("sub_state = nullif('{}', ''), confirmed_at = created_at + interval '40 min'", sub_state);
  }

  void attempt(const std::string& name, std::int64_t number, const std::string& kind, int place = 1,
               const std::string& outcome = "'accepted'") {
    const bool signed_here = kind == "original" || kind == "cancel";
    admin
        .must(
            fmt::format("INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, outcome, message, "
                        "                        fencing_token) "
                        "SELECT chain_id, '{}', tx_id, {}, '{}', {}, '{{\"gasPrice\": \"1\"}}', {}, 'm', 7 "
                        "  FROM managed_tx WHERE tx_id = $1 RETURNING 1",
                        hash(number), place, kind, signed_here ? "'\\x0102'" : "NULL", outcome),
            pg::Params::of(ids.at(name)))
        .one();
  }

  void log(const Uuid& id, const std::string& state, const std::string& why) {
    admin.must(
        "INSERT INTO step_history (subject_id, at, from_state, to_state, sub_state, node, fencing_token, why) "
        "SELECT tx_id, created_at + interval '1 s', nullif('CREATED', $2), $2, sub_state, 'old', 7, $3 "
        "  FROM managed_tx WHERE tx_id = $1",
        pg::Params::of(id, state, why));
    admin.must(
        "INSERT INTO outbox_event (type, subject, data, created_at) "
        "SELECT 'Tx' || $2, 'tx/' || tx_id, jsonb_build_object('txId', tx_id), created_at + interval '2 s' "
        "  FROM managed_tx WHERE tx_id = $1",
        pg::Params::of(id, state));
  }

  // Two chains, seven signers, every state and every sub state that has rules of its own.
  void fill() {
    lease(kMixed, "next_nonce, next_creation, chain_nonce, chain_nonce_at", "16, 19, 6, '2026-10-30Z'");
    add_mixed();
    lease(kShared, "next_nonce, next_creation", "8, 5");
    add_shared();
    lease(kMined, "next_nonce, next_creation", "2, 2");
    numbered("all_confirmed", kMined, 0, 0, "CONFIRMED", sent(50) + "," + mined(70) + "," + ended());
    numbered("all_mined", kMined, 1, 1, "TRACKING", sent(51) + "," + mined(71) + ", sub_state = 'mined'");
    attempt("all_confirmed", 50, "original");
    attempt("all_mined", 51, "original");
    lease(kUnseeded, "next_creation", "2");
    waiting("unseeded_0", kUnseeded, 0);
    waiting("unseeded_1", kUnseeded, 1);
    lease(kReconcile, "next_nonce, next_creation, chain_nonce, needs_reconcile", "4, 3, 9, true");
    numbered("reconcile_ended", kReconcile, 0, 3, "CONFIRMED", sent(60) + "," + mined(80) + "," + ended());
    attempt("reconcile_ended", 60, "original");
    waiting("reconcile_1", kReconcile, 1);
    waiting("reconcile_2", kReconcile, 2);
    lease(kTwin, "next_nonce, next_creation", "1, 2");
    numbered("twin_sent", kTwin, 0, 0, "TRACKING", sent(13));  // the hash of another chain's attempt
    attempt("twin_sent", 13, "original");
    waiting("twin_waiting", kTwin, 1);
    admin.must(
        "INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at) VALUES ($1, $2, '', 3, "
        "'-infinity')",
        pg::Params::of(kIdle.chain_id, kIdle.signer));
  }

  // Columns of a transaction as JSON, by id. FENCEPOST_TX_COLUMNS are those that the API reads. Of these, only two
  // values change: the next broadcast of an ended transaction, which never comes, and the token of a waiting one, which
  // no answer contains.
  Rows transactions_before() {
    return rows("SELECT tx_id::text, (to_jsonb(t) || CASE WHEN state IN ('CONFIRMED', 'FAILED_FINAL') "
                "                                         THEN '{\"next_resubmit_at\": null}'::jsonb "
                "                                         WHEN state = 'CREATED' THEN '{\"fencing_token\": null}' "
                "                                         ELSE '{}' END)::text "
                "  FROM (SELECT " FENCEPOST_TX_COLUMNS("t") ", t.payload_hash, t.receipt_changed_at, t.withdrawn "
                "          FROM managed_tx AS t) AS t");
  }
  Rows transactions_after() {
    return rows("SELECT tx_id::text, to_jsonb(t)::text "
                "  FROM (SELECT " FENCEPOST_TX_COLUMNS("t") ", t.payload_hash, t.receipt_changed_at, t.withdrawn "
                "          FROM tx_view AS t) AS t");
  }
  Rows attempts() { return rows("SELECT chain_id || tx_hash, to_jsonb(a)::text FROM tx_attempt AS a"); }

  // The two first columns of a query.
  Rows rows(std::string_view sql) {
    Rows out;
    for (const auto row : admin.must(sql)) out.emplace(row.get<std::string>(0), row.get<std::string>(1));
    return out;
  }
  std::string text(std::string_view sql) { return admin.value<std::string>(sql); }
  // The names of the transactions that a query returns, sorted.
  std::vector<std::string> names(std::string_view sql) {
    std::vector<std::string> out;
    for (const auto row : admin.must(sql)) out.push_back(name_of(row.get<Uuid>(0)));
    std::ranges::sort(out);
    return out;
  }
  std::string name_of(const Uuid& id) const {
    for (const auto& [name, known] : ids) {
      if (known == id) return name;
    }
    return id.to_string();
  }

  test::TestDatabase db;
  Session admin{db.dsn(), "admin"};
  std::map<std::string, Uuid> ids;  // by name

 private:
  void add_mixed() {
    numbered("confirmed", kMixed, 0, 0, "CONFIRMED",
             sent(1) + "," + mined(100) + "," + ended() + ", confirmations = '[{\"number\": 100}]', retry_count = 2");
    numbered("reverted", kMixed, 1, 1, "FAILED_FINAL",
             sent(2) + "," + mined(101, "0x0") + "," + ended("reverted") + ", confirmations = '[1]'");
    numbered("elsewhere", kMixed, 2, 2, "FAILED_FINAL",
             sent(3) + "," + ended("nonce_consumed_elsewhere") + ", error_message = 'another sender'");
    numbered("violated", kMixed, 3, 3, "CONFIRMED", sent(4) + "," + mined(103) + "," + ended("finality_violated"));
    numbered("mined", kMixed, 4, 4, "TRACKING",
             sent(5) + "," + mined(104) + ", sub_state = 'mined', fencing_token = 6");
    numbered("mined_reverted", kMixed, 5, 5, "TRACKING", sent(6) + "," + mined(105, "0x0") + ", sub_state = 'mined'");
    numbered("reorged", kMixed, 6, 6, "TRACKING",
             sent(7) + ", sub_state = 'reorged', withdrawn = true, receipt_changed_at = created_at + interval '6 min'");
    numbered("sent", kMixed, 7, 7, "TRACKING", sent(8));
    numbered("cancelling", kMixed, 8, 8, "TRACKING", sent(10) + ", sub_state = 'cancelling'");
    numbered("recorded", kMixed, 9, 9, "TRACKING", sent(11) + ", sub_state = 'recorded'");
    admin.must("UPDATE managed_tx SET next_resubmit_at = NULL WHERE sub_state = 'recorded'");
    numbered("mined_above", kMixed, 10, 10, "STUCK", sent(12) + "," + mined(106) + ", sub_state = 'no_receipt'");
    numbered("stuck", kMixed, 11, 11, "STUCK", sent(13) + ", sub_state = 'no_receipt', error_message = 'old'");
    numbered("taken", kMixed, 12, 12, "STUCK", sent(14) + ", sub_state = 'nonce_taken'");
    numbered("claimed", kMixed, 13, 13, "ALLOCATED", sent(15));
    numbered("retrying", kMixed, 14, 14, "ALLOCATED",
             "sub_state = 'transient', error_message = 'busy', retry_count = 3, next_resubmit_at = '2099-01-01Z'");
    numbered("unsigned", kMixed, 15, 15, "ALLOCATED", "next_resubmit_at = created_at");
    for (const int i : {16, 17, 18}) waiting(fmt::format("waiting_{}", i), kMixed, i);
    int number = 0;
    for (const auto* name : {"confirmed", "reverted", "elsewhere", "violated", "mined", "mined_reverted", "reorged",
                             "sent", "cancelling"}) {
      attempt(name, ++number, "original");
    }
    attempt("cancelling", 10, "cancel", 2);
    attempt("recorded", 11, "recorded", 1, "'unknown'");
    for (const auto* name : {"mined_above", "stuck", "taken"}) attempt(name, number++ + 3, "original");
    attempt("claimed", 15, "original", 1, "NULL");
  }

  void add_shared() {
    numbered("external_mined", kShared, 0, 5, "TRACKING", sent(40) + "," + mined(90) + ", sub_state = 'external'");
    numbered("external", kShared, 1, 6, "TRACKING",
             "sub_state = 'external', first_submitted_at = created_at + interval '1 min'");
    waiting("behind_external", kShared, 2);
    numbered("gap_fill", kShared, 3, 7, "ALLOCATED", "sub_state = 'gap_fill', next_resubmit_at = created_at");
    waiting("last", kShared, 4);
    admin.must("UPDATE managed_tx SET request_id = NULL WHERE sub_state IN ('external', 'gap_fill')");
    attempt("external_mined", 40, "external", 1, "NULL");
  }
};

}  // namespace fencepost::tx
