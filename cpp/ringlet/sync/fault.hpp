// Where a test ends or stops a process in the middle of a protocol.
#pragma once

namespace ringlet::sync {

// Passed before every store to a word that other ranks read, and before every chunk of work. In a build for fault
// injection (RINGLET_FAULT) the process kills itself at the one whose number the environment variable RINGLET_FAULT
// gives, counted from 1, or stops itself there with RINGLET_FAULT_STOPS; else it is nothing.
#if defined(RINGLET_FAULT)
void fault_point() noexcept;
#else
inline void fault_point() noexcept {}
#endif

}  // namespace ringlet::sync
