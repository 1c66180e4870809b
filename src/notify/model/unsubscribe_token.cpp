#include "notify/model/unsubscribe_token.hpp"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "base/digest.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kMarkDigits = 32;

std::string mark_of(const Secret& key, std::string_view body) {
  return hmac_sha256_hex(key.reveal(), fmt::format("unsubscribe {}", body)).substr(0, kMarkDigits);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string unsubscribe_token(const Secret& key, const Unsubscribe& what) {
  auto body = fmt::format("{}.{}.{}", what.email_id, what.chain_id, what.contract);
  return fmt::format("{}.{}", body, mark_of(key, body));
}

std::optional<Unsubscribe> read_unsubscribe_token(const Secret& key, std::string_view token) {
  const auto last = token.rfind('.');
  if (last == std::string_view::npos) return std::nullopt;
  const auto body = token.substr(0, last);
  if (!constant_time_equal(token.substr(last + 1), mark_of(key, body))) return std::nullopt;
  const auto first = body.find('.');
  const auto second = body.find('.', first + 1);
  const auto email_id = number(body.substr(0, first));
  const auto chain_id = number(body.substr(first + 1, second - first - 1));
  if (!email_id || !chain_id) return std::nullopt;
  return Unsubscribe{*email_id, *chain_id, std::string(body.substr(second + 1))};
}

}  // namespace fencepost::notify
