#include "evm/header_window.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace fencepost::evm {
namespace {

Error not_linked(const BlockHeader& header) {
  return conflict("not_linked", fmt::format("block {} ({}) does not link to the block before it; its parent is {}",
                                            header.number, header.hash, header.parent_hash));
}

}  // namespace

bool follows(const BlockHeader& child, const BlockHeader& parent) {
  return child.number == parent.number + 1 && child.parent_hash == parent.hash;
}

HeaderWindow::HeaderWindow(std::size_t capacity) : capacity_(std::max<std::size_t>(1, capacity)) {}

const BlockHeader* HeaderWindow::find(std::int64_t number) const {
  if (empty() || number < headers_.front().number || number > headers_.back().number) return nullptr;
  return &headers_[static_cast<std::size_t>(number - headers_.front().number)];
}

std::optional<bool> HeaderWindow::contains(std::int64_t number, std::string_view hash) const {
  const auto* header = find(number);
  if (header == nullptr) return std::nullopt;
  return header->hash == hash;
}

std::vector<BlockHeader> HeaderWindow::confirmations(std::int64_t number, std::string_view hash) const {
  if (contains(number, hash) != true) return {};
  return {headers_.begin() + (number - headers_.front().number), headers_.end()};
}

Result<HeaderWindow::Applied> HeaderWindow::apply(std::span<const BlockHeader> headers) {
  if (headers.empty()) return Applied{};
  for (std::size_t i = 1; i < headers.size(); ++i) {
    if (!follows(headers[i], headers[i - 1])) return fail(not_linked(headers[i]));
  }
  Applied applied;
  if (!empty()) {
    const auto* parent = find(headers.front().number - 1);
    if (parent == nullptr || !follows(headers.front(), *parent)) return fail(not_linked(headers.front()));
    if (parent != head()) applied.reorged_to = parent->number;
    headers_.resize(static_cast<std::size_t>(headers.front().number - headers_.front().number));
  }
  headers_.insert(headers_.end(), headers.begin(), headers.end());
  if (headers_.size() > capacity_) {
    headers_.erase(headers_.begin(), headers_.end() - static_cast<std::ptrdiff_t>(capacity_));
  }
  return applied;
}

void HeaderWindow::prepend(std::span<const BlockHeader> older) {
  for (const auto& header : older | std::views::reverse) {
    if (empty() || headers_.size() >= capacity_) return;
    if (follows(headers_.front(), header)) headers_.push_front(header);
  }
}

}  // namespace fencepost::evm
