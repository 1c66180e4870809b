#include "outbox/nats/nats_handles.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost::outbox {

std::string_view to_string(NatsFailure failure) {
  switch (failure) {
    case NatsFailure::kUnreachable:
      return "unreachable";
    case NatsFailure::kNoStream:
      return "no_stream";
    case NatsFailure::kStream:
      return "stream";
    case NatsFailure::kRefused:
      return "refused";
    case NatsFailure::kTimeout:
      return "timeout";
    case NatsFailure::kLost:
      return "lost";
  }
  std::unreachable();
}

namespace nats {

std::string reason_of(natsStatus status) {
  natsStatus last = NATS_OK;
  const char* const detail = nats_GetLastError(&last);
  std::string_view text = detail != nullptr && last == status ? detail : "";
  if (const auto end = text.find("): "); text.starts_with('(') && end != std::string_view::npos) {
    text.remove_prefix(end + 3);  // "(conn.c:2088): "
  }
  // libnats quotes a URL that it cannot use, with the password in it.
  if (text.empty() || text.find("://") != std::string_view::npos || text == natsStatus_GetText(status))
    return natsStatus_GetText(status);
  return plain_text(fmt::format("{}: {}", natsStatus_GetText(status), text), 300);
}

}  // namespace nats
}  // namespace fencepost::outbox
