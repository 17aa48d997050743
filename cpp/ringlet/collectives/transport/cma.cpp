#include "ringlet/collectives/transport/cma.hpp"

#if defined(__linux__)
#include <sys/uio.h>

#include <cerrno>
#endif

namespace ringlet::collectives {

#if defined(__linux__)

// The system call copies fewer bytes than requested if it is interrupted.
CmaResult cma_read(int pid, std::uint64_t address, std::size_t bytes, void* to) noexcept {
  auto* here = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec local{.iov_base = here, .iov_len = bytes};
    const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
    const auto copied = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno == ESRCH || errno == EFAULT ? CmaResult::kEnded : CmaResult::kRefused;
    if (copied == 0) return CmaResult::kEnded;
    here += copied;
    address += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return CmaResult::kDone;
}

#else

CmaResult cma_read(int, std::uint64_t, std::size_t, void*) noexcept { return CmaResult::kRefused; }

#endif

}  // namespace ringlet::collectives
