#include "cli/api_command.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/clock.hpp"
#include "base/duration_text.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"

#include "cli/answer_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "config/config.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kPage = 200;  // the API's largest page

}  // namespace

Result<ApiClient> connect(const ApiFlags& flags) {
  auto access = find_api(flags, process_environment());
  if (!access) return fail(access.error());
  return ApiClient(std::move(*access));
}

void print_json(const json::value& value) {
  fmt::print("{}\n", json::serialize(value));
}

json::object json_list(json::array items, json::value next_cursor) {
  return {{"items", std::move(items)}, {"nextCursor", std::move(next_cursor)}};
}

int show_text(const Result<json::value>& answer, bool as_json,
              const std::function<std::string(const json::value&, std::size_t width)>& text) {
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
  } else {
    fmt::print("{}", text(*answer, terminal_columns()));
  }
  return kExitDone;
}

std::string new_request_id() {
  SystemClock clock;
  SystemRandom random;
  return UuidGenerator(clock, random).next().to_string();
}

Result<std::optional<std::chrono::milliseconds>> read_timeout(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto duration = parse_duration(text);
  if (!duration) return fail(duration.error());
  return *duration;
}

Result<ItemList> read_pages(Api& api, const PageFlags& page_flags,
                            const std::function<std::string(std::size_t limit, const std::string& cursor)>& target) {
  ItemList list;
  auto cursor = page_flags.cursor;
  const auto limit = page_flags.all ? kMostOfAll : page_flags.limit;
  do {
    const auto page = api.get(target(std::min(kPage, limit - list.items.size()), cursor));
    if (!page) return fail(page.error());
    for (const auto& item : items_of(*page)) list.items.push_back(item);
    cursor = text_at(*page, "nextCursor");
  } while (!cursor.empty() && list.items.size() < limit);
  list.next_cursor = std::move(cursor);
  return list;
}

void print_list(const ItemList& list, bool as_json, std::string_view none,
                std::string (*table)(const json::array&, std::size_t width)) {
  if (as_json) {
    print_json(json_list(list.items, list.next_cursor.empty() ? json::value(nullptr) : json::value(list.next_cursor)));
    if (list.more) print_notice(kMoreWithoutCursor);
  } else if (list.items.empty()) {
    fmt::print("{}\n", none);
  } else {
    fmt::print("{}", table(list.items, terminal_columns()));
    if (!list.next_cursor.empty()) {
      fmt::print("there are more: raise --limit, give --all, or go on with --cursor {}\n", printable(list.next_cursor));
    } else if (list.more) {
      fmt::print("{}\n", kMoreWithoutCursor);
    }
  }
}

}  // namespace fencepost::cli
