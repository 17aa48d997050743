// Reads the private memory of another process with process_vm_readv (cross-memory attach). No rank writes there: a
// process stopped before the system call would write when continued, into memory that its owner has since reused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::collectives {

// Result of a read of the memory of another process.
enum class CmaResult { kDone, kEnded, kRefused };

// Copies all bytes, or returns why not. kEnded: the process has exited, or its memory is unmapped.
CmaResult cma_read(int pid, std::uint64_t address, std::size_t bytes, void* to) noexcept;

}  // namespace ringlet::collectives
