#include "notify/page/explorer_links.hpp"

#include <fmt/format.h>

#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kLongest = 80;  // more than a hash has

// Anything else could lead to another page of the explorer.
bool is_hex_name(std::string_view text) {
  return text.size() > 2 && text.size() <= kLongest && text.starts_with("0x") &&
         text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
}

}  // namespace

ExplorerLinks::ExplorerLinks(std::string_view url) : url_(url) {
  while (url_.ends_with('/')) url_.pop_back();
}

std::string ExplorerLinks::url_of(std::string_view kind, std::string_view hex) const {
  return url_.empty() || !is_hex_name(hex) ? "" : fmt::format("{}/{}/{}", url_, kind, hex);
}

std::string ExplorerLinks::transaction_url(std::string_view hash) const {
  return url_of("tx", hash);
}

Line ExplorerLinks::transaction(std::string_view hash) const {
  return linked(mono(shortened(hash, kLongest)), transaction_url(hash));
}

Line ExplorerLinks::address(std::string_view address) const {
  return linked(mono(shortened(address, kLongest)), url_of("address", address));
}

}  // namespace fencepost::notify
