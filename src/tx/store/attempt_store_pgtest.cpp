// Tests which hashes of attempts the database accepts.
#include "tx/store/attempt_store.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

class AttemptHashes : public ProtocolTest {
 protected:
  bool stored(const std::string& hash) {
    Session session{db.dsn(), "node-a"};
    session.send(
        "INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token) "
        "VALUES ($1, $2, $3, 1, 'original', '\\x01', 1)",
        pg::Params::of(kChain, hash, ids.next()));
    return session.take().ok();
  }
};

TEST_F(AttemptHashes, are_32_bytes_in_lowercase_hex) {
  const std::string digits = "0123456789abcdef";
  const auto good = "0x" + digits + digits + digits + digits;
  EXPECT_TRUE(stored(good));
  EXPECT_TRUE(stored("0x" + std::string(64, '0')));
  for (const auto& bad :
       {std::string(), std::string("0x"), good.substr(0, 65), good + "0", good.substr(2), "0X" + good.substr(2),
        "0y" + good.substr(2), "0x" + std::string(64, 'A'), "0x" + std::string(63, '0') + "g",
        "0x" + std::string(62, '0') + "  ", "0x" + std::string(62, '0') + "\n0", " " + good.substr(0, 65),
        "0x" + std::string(62, '0') + "\xc3\xa9"}) {
    EXPECT_FALSE(stored(bad)) << '"' << bad << '"';
  }
}

}  // namespace
}  // namespace fencepost::tx
