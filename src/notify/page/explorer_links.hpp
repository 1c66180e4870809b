// Addresses and transactions as links to a chain's block explorer. Pure.
#pragma once

#include <string>
#include <string_view>

#include "notify/page/line.hpp"

namespace fencepost::notify {

class ExplorerLinks {
 public:
  // `url`: such as https://etherscan.io, with or without a slash at the end; empty: no links.
  explicit ExplorerLinks(std::string_view url);

  // Empty when there is no explorer, or the hash is not hex.
  std::string transaction_url(std::string_view hash) const;

  // Without a link where there is no URL.
  Line transaction(std::string_view hash) const;
  Line address(std::string_view address) const;

 private:
  std::string url_of(std::string_view kind, std::string_view hex) const;

  std::string url_;
};

}  // namespace fencepost::notify
