// Makes the rows of the table of keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/keys.hpp"
#include "config/kinds.hpp"

namespace fencepost::config {

using Count = Number<std::size_t>;
using Uint32 = Number<std::uint32_t>;

// The object reached by following member pointers: `config.*http.*port`.
template <class Object>
Object& follow(Object& object) {
  return object;  // NOLINT(bugprone-return-const-ref-from-parameter): the object outlives the path
}
template <class Object, class Member, class... Members>
auto& follow(Object& object, Member first, Members... rest) {
  return follow(object.*first, rest...);
}

// Where a value lives: `at(&Config::http, &HttpConfig::port)`.
template <class... Members>
auto at(Members... members) {
  return [=](auto& config) -> auto& { return follow(config, members...); };
}

template <class Kind, class Access>
Key key(std::string path, Access access, Kind kind, std::string doc) {
  Key out{.path = std::move(path), .type = kind.type(), .doc = std::move(doc)};
  out.secret = kIsSecret<Kind>;
  out.list = kTakesList<Kind>;
  out.set = [=](Config& config, const std::vector<std::string>& items) -> Result<void> {
    auto value = [&] {
      if constexpr (kTakesList<Kind>) {
        return kind.parse(items);
      } else {
        return kind.parse(items.front());
      }
    }();
    if (!value) return fail(std::move(value).error());
    access(config) = std::move(*value);
    return {};
  };
  out.get = [=](const Config& config) -> std::vector<std::string> {
    if constexpr (kTakesList<Kind>) {
      return kind.print(access(config));
    } else {
      return {kind.print(access(config))};
    }
  };
  return out;
}

}  // namespace fencepost::config
