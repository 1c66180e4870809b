// The pidfd system calls. glibc 2.36 declares them in a header that C++ cannot link against.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/unique_fd.hpp"

namespace fencepost {

// Returns an empty descriptor, with errno set, when there is no such process.
inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Returns false when the process has been reaped, or when the caller may not signal it.
inline bool send_signal(const UniqueFd& pidfd, int number) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0) == 0;
}

}  // namespace fencepost
