// ABIs that users uploaded: the tables timelock_abi and timelock_abi_function. Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "evm/abi/abi_type.hpp"
#include "pg/pool.hpp"

namespace fencepost::timelock {

inline constexpr std::size_t kMaxAbis = 1'000;

struct AbiView {
  Uuid id;
  std::string name;
  std::optional<std::int64_t> chain_id;  // none: every chain
  std::optional<std::string> address;    // none: every contract
  std::int64_t functions = 0;
  std::string created_by;
  TimePoint created_at;
};

struct NewAbi {
  Uuid id;
  std::string name;
  std::optional<std::int64_t> chain_id;
  std::optional<std::string> address;
  std::string json;
  std::vector<evm::AbiFunction> functions;
  std::string created_by;
};

// nullopt: there are kMaxAbis already.
awaitable<std::optional<AbiView>> insert_abi(pg::Pool& pool, NewAbi abi);
// In the order of their ids, which is the order of creation.
awaitable<std::vector<AbiView>> list_abis(pg::Pool& pool, std::optional<Uuid> after, std::size_t limit);
awaitable<std::optional<AbiView>> find_abi(pg::Pool& pool, Uuid id);
// False: there is no such ABI.
awaitable<bool> remove_abi(pg::Pool& pool, Uuid id);

// A function that may explain a call.
struct UploadedFunction {
  std::string address;  // empty: of any contract
  std::string declaration;
};
// Functions with one of these selectors (0x and eight digits), for one of these addresses or for any.
awaitable<std::vector<UploadedFunction>> find_functions(pg::Pool& pool, std::int64_t chain_id,
                                                        std::vector<std::string> selectors,
                                                        std::vector<std::string> addresses);

}  // namespace fencepost::timelock
