// Detection of forks.
#pragma once

#include <cstdint>

namespace ringlet::sync {

// Number of forks that led to this process since the library was loaded. Threads do not survive a fork: in the child,
// an earlier group has lost its ranks.
std::uint64_t fork_generation() noexcept;

}  // namespace ringlet::sync
