// Bytes between the private memories of two processes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::collectives {

// What the system says to an attempt to reach the memory of another process.
enum class Crossing { kDone, kEnded, kRefused };

// Copies all of it, or says why not. kEnded: the process is gone, or its memory is.
Crossing read_across(int pid, std::uint64_t address, std::size_t bytes, void* to) noexcept;
Crossing write_across(int pid, std::uint64_t address, std::size_t bytes, const void* from) noexcept;

}  // namespace ringlet::collectives
