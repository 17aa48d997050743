// Fault injection: points at which a test ends or stops a process in the middle of a protocol.
#pragma once

namespace ringlet::sync {

// Called before every store to a word that other ranks read, and before every chunk of work. In a build for fault
// injection (RINGLET_FAULT), the process kills itself, or stops itself with RINGLET_FAULT_STOPS, at the call whose
// number, counted from 1, is in the environment variable RINGLET_FAULT. In other builds, it does nothing.
#if defined(RINGLET_FAULT)
void fault_point() noexcept;
#else
inline void fault_point() noexcept {}
#endif

}  // namespace ringlet::sync
