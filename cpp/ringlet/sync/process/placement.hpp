// The core on which a thread runs.
#pragma once

#include <bitset>

namespace ringlet::sync {

inline constexpr int kUnknownCore = -1;
using CoreSet = std::bitset<1024>;

// The core of the calling thread at this moment.
int current_core() noexcept;

// Moves the calling thread to a core other than `taken`. Its affinity is the same before and after, so the system may
// move it again at any time. False if its affinity allows no other core.
bool move_to_core_outside(const CoreSet& taken) noexcept;

// Whether fewer threads are ready to run than this machine has cores. False if the system does not report it.
bool has_idle_core() noexcept;

}  // namespace ringlet::sync
