// Whether a node refused a request for logs because the range has too many blocks or too many logs.
//
// Every node software and provider says it in its own words, and with codes that mean other things elsewhere: -32005 is
// also a quota. So the words decide. Some nodes send -32005 and no words but "limit exceeded": that is a refusal while
// the range has several blocks, since a smaller one may fit, and a quota when it has one. A quota, an overload or a
// missing block is not a refusal of the range: a smaller range would fail in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::evm {

// For errors of ChainConnector::logs_in_range and logs_in_block; a bare limit is an answer only of ranges with several
// blocks. True also when the node gave up the query after its time limit, and when
// the answer was over the client's size limit. False when no answer came in time: the network may be slow.
bool is_range_too_large(const Error& error);

// The number of blocks that the refusal names as acceptable, at least 1; nothing when it names none. Nodes count
// differently and some name a wrong number: the next request may be refused again.
std::optional<std::int64_t> suggested_span(const Error& error);

// Whether an error is -32005 that does not say which limit was exceeded: the range's or the quota's.
bool is_bare_limit(std::int64_t code, std::string_view message);

// The same as is_range_too_large for the `message` and `data` members of an answer.
bool refuses_range(std::string_view message, std::string_view data);

}  // namespace fencepost::evm
