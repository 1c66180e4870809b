#include "notify/model/notify_filters.hpp"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/contains.hpp"
#include "base/hex.hpp"
#include "base/text.hpp"
#include "evm/abi/abi.hpp"
#include "evm/abi/abi_type.hpp"
#include "evm/address.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;

constexpr std::size_t kSelectorBytes = 4;
constexpr std::size_t kMaxFilterText = 200;

bool is_selector(std::string_view text) {
  const auto bytes = from_hex0x(text);
  return bytes && bytes->size() == kSelectorBytes;
}

std::string selector_of(const std::string& function) {
  return is_selector(function) ? function : to_hex0x(evm::selector(function));
}

std::string read_target(const JsonReader& in) {
  const auto address = evm::parse_address(in.string(kMaxFilterText));
  if (!address) in.reject(address.error().code, address.error().message);
  return *address;
}

std::string read_function(const JsonReader& in) {
  const auto text = in.string(kMaxFilterText);
  if (is_selector(text)) return lowercase(text);
  const auto function = evm::parse_signature(text);
  if (!function) {
    in.reject("bad_function",
              "expected a signature such as transfer(address,uint256), or a selector such as 0xa9059cbb");
  }
  return function->signature();
}

template <class Read>
std::vector<std::string> read_list(const JsonReader& in, Read read) {
  std::vector<std::string> out;
  if (!in.present()) return out;
  for (const auto& item : in.array(kFiltersMaxValues)) {
    auto value = read(item);
    if (!contains(out, value)) out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

bool NotifyFilters::match(const std::vector<FlowCall>& calls) const {
  if (unreadable) return false;
  std::vector<std::string> selectors;
  selectors.reserve(functions.size());
  for (const auto& function : functions) selectors.push_back(selector_of(function));
  return std::ranges::any_of(calls, [&](const FlowCall& call) {
    return (targets.empty() || contains(targets, call.target)) &&
           (selectors.empty() || contains(selectors, call.selector));
  });
}

NotifyFilters read_notify_filters(const JsonReader& in) {
  in.reject_unknown({"targets", "functions"});
  return {.targets = read_list(in.field("targets"), read_target),
          .functions = read_list(in.field("functions"), read_function),
          .unreadable = false};
}

NotifyFilters stored_filters(const std::optional<json::value>& stored) {
  if (!stored) return {};
  try {
    return read_notify_filters(JsonReader(*stored));
  } catch (const Exception&) {
    return {.targets = {}, .functions = {}, .unreadable = true};
  }
}

json::value to_json(const NotifyFilters& filters) {
  json::object out;
  if (!filters.targets.empty()) out["targets"] = json::array(filters.targets.begin(), filters.targets.end());
  if (!filters.functions.empty()) out["functions"] = json::array(filters.functions.begin(), filters.functions.end());
  return out;
}

}  // namespace fencepost::notify
