#include "ringlet/collectives/crossing.hpp"

#if defined(__linux__)
#include <sys/uio.h>

#include <cerrno>
#endif

namespace ringlet::collectives {

#if defined(__linux__)

namespace {

// Either call copies less than asked for if it is interrupted.
template <class Copy>
Crossing copy_all(std::byte* here, std::uint64_t there, std::size_t bytes, Copy&& copy) noexcept {
  while (bytes > 0) {
    const iovec local{.iov_base = here, .iov_len = bytes};
    const iovec remote{.iov_base = reinterpret_cast<void*>(there), .iov_len = bytes};
    const auto copied = copy(&local, &remote);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno == ESRCH || errno == EFAULT ? Crossing::kEnded : Crossing::kRefused;
    if (copied == 0) return Crossing::kEnded;
    here += copied;
    there += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return Crossing::kDone;
}

}  // namespace

Crossing read_across(int pid, std::uint64_t address, std::size_t bytes, void* to) noexcept {
  return copy_all(static_cast<std::byte*>(to), address, bytes, [&](const iovec* local, const iovec* remote) {
    return process_vm_readv(pid, local, 1, remote, 1, 0);
  });
}

Crossing write_across(int pid, std::uint64_t address, std::size_t bytes, const void* from) noexcept {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(from));  // an iovec knows no const
  return copy_all(data, address, bytes, [&](const iovec* local, const iovec* remote) {
    return process_vm_writev(pid, local, 1, remote, 1, 0);
  });
}

#else

Crossing read_across(int, std::uint64_t, std::size_t, void*) noexcept { return Crossing::kRefused; }
Crossing write_across(int, std::uint64_t, std::size_t, const void*) noexcept { return Crossing::kRefused; }

#endif

}  // namespace ringlet::collectives
