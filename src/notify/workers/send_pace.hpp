// How fast mails leave: at most so many a second in all, and so many to the addresses of one domain. Pure.
//
// Each node counts for itself: several nodes together send as many times as much.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fencepost::notify {

class SendPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  SendPace(std::uint32_t per_second, std::uint32_t domain_per_second);

  // How many mails may leave now, whatever their domains, and when the next one may if that is none.
  std::size_t free_places(Time now) const;
  Time next_place() const { return free_at_; }

  // Takes a place for a mail to that domain. Zero: it may leave now. Otherwise no place was taken, and the mail is put
  // off for so long: behind the other mails to the domain that were put off.
  std::chrono::milliseconds take(std::string_view domain, Time now);

 private:
  using Step = std::chrono::steady_clock::duration;
  struct Domain {
    Time free_at{};  // when the next mail may leave
    Time line_at{};  // the end of the line of mails that were put off
  };
  void forget(Time now);

  Step step_;
  Step domain_step_;
  Time free_at_{};
  std::map<std::string, Domain, std::less<>> domains_;  // those that have sent a mail lately
};

}  // namespace fencepost::notify
