#include "outbox/webhook/parcel.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "outbox/webhook/webhook.hpp"

namespace fencepost::outbox {
namespace {

ParcelEvent copy_of(const LogEvent& event) {
  return {.seq = event.seq, .type = event.type, .subject = event.subject, .envelope = event.envelope};
}

}  // namespace

std::vector<Parcel> pack(const Uuid& webhook, const std::vector<const LogEvent*>& events, std::size_t most) {
  most = std::max<std::size_t>(most, 1);
  std::vector<Parcel> out;
  for (std::size_t begin = 0; begin < events.size(); begin += most) {
    const auto end = std::min(begin + most, events.size());
    Parcel parcel{.message = webhook_message_id(webhook, events[begin]->seq, events[end - 1]->seq)};
    parcel.events.reserve(end - begin);
    for (auto i = begin; i < end; ++i) parcel.events.push_back(copy_of(*events[i]));
    out.push_back(std::move(parcel));
  }
  return out;
}

std::string body_of(const Parcel& parcel, bool list) {
  if (!list) return parcel.events.front().envelope;
  std::string body = "[";
  for (const auto& event : parcel.events) {
    if (body.size() > 1) body += ',';
    body += event.envelope;
  }
  body += ']';
  return body;
}

void ParcelQueue::add(Parcel parcel) {
  events_ += parcel.events.size();
  for (const auto& event : parcel.events) subjects_.insert(event.subject);
  const auto behind = std::find_if(parcels_.rbegin(), parcels_.rend(),
                                   [&](const Parcel& other) { return other.first_seq() < parcel.first_seq(); });
  parcels_.insert(behind.base(), std::move(parcel));
}

bool ParcelQueue::has(std::int64_t seq) const {
  return std::ranges::any_of(parcels_, [&](const Parcel& parcel) {
    return std::ranges::find(parcel.events, seq, &ParcelEvent::seq) != parcel.events.end();
  });
}

std::optional<Deadline> ParcelQueue::oldest() const {
  if (parcels_.empty()) return std::nullopt;
  return std::ranges::min(parcels_, {}, &Parcel::parked_at).parked_at;
}

void ParcelQueue::remove(Place place) {
  events_ -= place->events.size();
  for (const auto& event : place->events) subjects_.erase(subjects_.find(event.subject));
  parcels_.erase(place);
}

std::vector<ParcelQueue::Place> ParcelQueue::ready() {
  std::vector<Place> out;
  std::set<std::string_view> held;
  for (auto place = parcels_.begin(); place != parcels_.end(); ++place) {
    const bool free =
        std::ranges::none_of(place->events, [&](const auto& event) { return held.contains(event.subject); });
    for (const auto& event : place->events) held.insert(event.subject);
    if (free) out.push_back(place);
  }
  return out;
}

std::chrono::milliseconds retry_delay(int failures, std::optional<std::chrono::milliseconds> asked,
                                      const WebhookOptions& options, Random& random) {
  const auto doublings = std::min(std::max(failures - 1, 0), 40);
  const auto base = std::min(static_cast<double>(options.retry_initial.count()) * std::ldexp(1.0, doublings),
                             static_cast<double>(options.retry_cap.count()));
  const auto jittered = std::chrono::milliseconds(static_cast<std::int64_t>(base * (0.8 + 0.4 * random.uniform())));
  return std::max(jittered, asked.value_or(std::chrono::milliseconds(0)));
}

}  // namespace fencepost::outbox
