#include "outbox/feed/event_filter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/id_text.hpp"
#include "base/text.hpp"
#include "http/errors.hpp"
#include "http/request_reader.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxValueBytes = 256;

bool listed(const std::vector<std::string>& list, std::string_view value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

Error bad_value(std::string message) {
  return invalid("bad_request", std::move(message));
}

Result<std::string> read_type(const EventCatalog& catalog, std::string_view text) {
  if (text == kGapType || catalog.domain_of_type(text) != nullptr) return std::string(text);
  return fail(bad_value(fmt::format("there is no event type \"{}\"; docs/events.md lists the types", text)));
}

Result<std::string> read_subject(const EventCatalog& catalog, std::string_view text) {
  const auto* domain = text.contains('/') ? catalog.domain_of(text) : nullptr;
  if (domain == nullptr) {
    return fail(bad_value(fmt::format("expected a subject such as \"tx/<txId>\", got {}", quote(text))));
  }
  auto subject = domain->read_subject(text);
  if (!subject) return fail(bad_value(fmt::format("{} is no subject: {}", quote(text), subject.error().message)));
  return subject;
}

Result<std::string> read_chain(std::string_view text) {
  if (parse_id(text).value_or(0) > 0) return std::string(text);
  return fail(bad_value(fmt::format("expected a chain id in decimal digits, got {}", quote(text))));
}

// One list of a filter: its name in a query (plural in a body), where it is stored, and how a value is read.
struct FilterList {
  std::string name;
  std::function<std::vector<std::string>&(EventFilter&)> list;
  std::function<Result<std::string>(std::string_view)> read;
};

std::vector<FilterList> filter_lists(const EventCatalog& catalog) {
  std::vector<FilterList> lists{
      {"type", [](EventFilter& f) -> auto& { return f.types; },
       [&catalog](std::string_view text) { return read_type(catalog, text); }},
      {"subject", [](EventFilter& f) -> auto& { return f.subjects; },
       [&catalog](std::string_view text) { return read_subject(catalog, text); }},
      {"chain", [](EventFilter& f) -> auto& { return f.chains; }, read_chain},
  };
  for (const auto& domain : catalog.domains()) {
    lists.push_back({std::string(domain.kind),
                     [kind = std::string(domain.kind)](EventFilter& f) -> auto& { return f.ids[kind]; },
                     domain.read_id});
  }
  return lists;
}

void drop_empty(EventFilter& filter) {
  std::erase_if(filter.ids, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace

bool EventFilter::matches(const LogEvent& event) const {
  if (event.type == kGapType) return true;
  if (!listed(types, event.type) || !listed(subjects, event.subject) || !listed(chains, event.chain)) return false;
  return std::ranges::all_of(ids, [&](const auto& entry) {
    const auto& [kind, wanted] = entry;
    return event.domain != nullptr && event.domain->kind == kind && listed(wanted, event.id);
  });
}

EventFilter read_event_filter(const EventCatalog& catalog, const JsonReader& in) {
  EventFilter filter;
  for (const auto& list : filter_lists(catalog)) {
    const auto field = in.field(list.name + "s");
    if (!field.present()) continue;
    for (const auto& item : field.array(kFilterMaxValues)) {
      auto value = list.read(item.string(kMaxValueBytes));
      if (!value) item.reject(value.error().code, value.error().message);
      list.list(filter).push_back(std::move(*value));
    }
  }
  drop_empty(filter);
  return filter;
}

std::vector<std::string> event_filter_members(const EventCatalog& catalog) {
  std::vector<std::string> members;
  for (const auto& list : filter_lists(catalog)) members.push_back(list.name + "s");
  return members;
}

json::object to_json(const EventFilter& filter) {
  json::object out;
  const auto put = [&out](std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) out[name] = json::array(values.begin(), values.end());
  };
  put("types", filter.types);
  put("subjects", filter.subjects);
  put("chains", filter.chains);
  for (const auto& [kind, values] : filter.ids) put(kind + "s", values);
  return out;
}

EventFilter read_event_query(const EventCatalog& catalog, const http::Request& request,
                             std::vector<std::string_view> more) {
  const auto lists = filter_lists(catalog);
  for (const auto& list : lists) more.push_back(list.name);
  http::check_query(request, more);
  EventFilter filter;
  for (const auto& list : lists) {
    const auto given = request.query(list.name);
    if (!given) continue;
    std::string_view rest = *given;
    for (std::size_t count = 1;; ++count) {
      const auto text = rest.substr(0, rest.find(','));
      auto value = list.read(text);
      if (count > kFilterMaxValues) value = fail(bad_value(fmt::format("at most {} values", kFilterMaxValues)));
      if (!value) {
        const auto code = value.error().code == "bad_request" ? "invalid_parameter" : value.error().code;
        throw Exception(
            invalid(code, fmt::format("{}: {}", list.name, value.error().message)).with("parameter", list.name));
      }
      list.list(filter).push_back(std::move(*value));
      if (text.size() == rest.size()) break;
      rest.remove_prefix(text.size() + 1);
    }
  }
  drop_empty(filter);
  return filter;
}

EventVisibility::EventVisibility(const EventCatalog& catalog, const http::Principal& principal)
    : admin_(principal.has_scope("admin")) {
  for (const auto& domain : catalog.domains()) {
    if (!principal.has_scope(domain.read_scope)) continue;
    const auto* const ids = principal.restriction(domain.kind);
    domains_.push_back(
        {.domain = &domain, .restricted = ids != nullptr, .ids = ids != nullptr ? *ids : std::vector<std::string>()});
  }
}

const EventVisibility::Visible* EventVisibility::find(const EventDomain* domain) const {
  const auto found = std::ranges::find(domains_, domain, &Visible::domain);
  return found == domains_.end() ? nullptr : &*found;
}

bool EventVisibility::allows(const LogEvent& event) const {
  if (event.type == kGapType) return true;
  if (event.domain == nullptr) return admin_;
  const auto* const visible = find(event.domain);
  if (visible == nullptr) return false;
  return !visible->restricted || std::ranges::find(visible->ids, event.id) != visible->ids.end();
}

Result<void> EventVisibility::check(const EventCatalog& catalog, const EventFilter& filter) const {
  const auto missing = [](std::string_view scope) {
    return fail(http::forbidden("insufficient_scope", fmt::format("this API key lacks the scope {}", scope))
                    .with("scope", std::string(scope)));
  };
  if (domains_.empty()) return missing(catalog.domains().front().read_scope);
  for (const auto& type : filter.types) {
    const auto* const domain = catalog.domain_of_type(type);
    if (domain != nullptr && find(domain) == nullptr) return missing(domain->read_scope);
  }
  for (const auto& [kind, ids] : filter.ids) {
    const auto* const domain = catalog.domain_of_kind(kind);
    const auto* const visible = find(domain);
    if (visible == nullptr) return missing(domain->read_scope);
    if (!visible->restricted) continue;
    for (const auto& id : ids) {
      if (std::ranges::find(visible->ids, id) != visible->ids.end()) continue;
      return fail(
          http::forbidden(kind + "_not_allowed", fmt::format("this API key may not see events of {} {}", kind, id))
              .with(kind, id));
    }
  }
  return {};
}

}  // namespace fencepost::outbox
