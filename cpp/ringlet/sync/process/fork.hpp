// Whether this process is still the one that made an object.
#pragma once

#include <cstdint>

namespace ringlet::sync {

// How often fork() has led to this process since the library was loaded. Threads do not survive a fork: a group made
// before it has lost its ranks in the child.
std::uint64_t fork_generation() noexcept;

}  // namespace ringlet::sync
