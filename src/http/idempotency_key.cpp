#include "http/idempotency_key.hpp"

#include <fmt/format.h>

#include "base/request_id.hpp"
#include "base/text.hpp"

namespace fencepost::http {
namespace {

Exception bad_key(std::string_view why) {
  return Exception(invalid("bad_idempotency_key", fmt::format("{}: {}", kIdempotencyHeader, why))
                       .with("header", std::string(kIdempotencyHeader)));
}

}  // namespace

std::optional<std::string> read_idempotency_key(const Request& request) {
  const auto texts = request.headers(kIdempotencyHeader);
  if (texts.empty()) return std::nullopt;
  if (texts.size() > 1) throw bad_key("expected one value, got several");
  auto key = parse_request_id(texts.front());
  if (!key) throw bad_key(key.error().message);
  return std::move(*key);
}

std::optional<std::string> one_key(std::optional<std::string> header, std::optional<std::string> body,
                                   std::string_view field) {
  if (!header) return body;
  if (body && *body != *header) {
    throw Exception(
        invalid("idempotency_key_mismatch",
                fmt::format("{}: {} differs from the header {}, which is {}; send one of them, or the same value",
                            field, quote(*body), kIdempotencyHeader, quote(*header)))
            .with("field", std::string(field))
            .with("header", std::string(kIdempotencyHeader)));
  }
  return header;
}

void refuse_idempotency_key(const Request& request) {
  if (request.headers(kIdempotencyHeader).empty()) return;
  throw Exception(
      invalid("idempotency_key_in_batch",
              fmt::format("{}: not allowed for a batch; give each item its key in the body", kIdempotencyHeader))
          .with("header", std::string(kIdempotencyHeader)));
}

}  // namespace fencepost::http
