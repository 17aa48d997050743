// Reads the private memory of another process. No rank writes there: a process that is stopped before the system call
// would write when it is continued, into memory that its owner has long used for something else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::collectives {

// What the system says to an attempt to reach the memory of another process.
enum class Crossing { kDone, kEnded, kRefused };

// Copies all of it, or says why not. kEnded: the process is gone, or its memory is.
Crossing read_across(int pid, std::uint64_t address, std::size_t bytes, void* to) noexcept;

}  // namespace ringlet::collectives
