// The flight recorder: the last operations of each thread of this process, in a file without a name that other
// processes of the user can read, even after this process was killed if another one holds the file.
//
// python/ringlet/observe/recorder_memory.py makes the file and writes the header, its first page. Recording functions
// do not throw, and do nothing without a file. The child of a fork() does not write to the file of its parent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringlet/record/ring.hpp"

namespace ringlet::record {

inline constexpr std::size_t kMostRings = 256;  // operations of more threads at a time are not recorded
inline constexpr std::size_t kRingsOffset = kPage + kNumPlaces * sizeof(Place);  // the places follow the header
inline constexpr std::size_t kBytes = kRingsOffset + kMostRings * sizeof(RingMemory);
// In the header: the number of rings that have been used, the first ones; the number of runs of strategies.
inline constexpr std::size_t kNumRingsOffset = 56;
inline constexpr std::size_t kNumRunsOffset = 64;

// True for one caller in each process, which then opens the recorder if it is enabled.
bool claim_opening() noexcept;
// Uses an empty file that can be sealed, which then begins with `header`; takes ownership of `fd`. Throws
// core::SharedMemoryError if the file is in use by another process, or memory is missing.
void open(int fd, std::string_view header);
int descriptor() noexcept;  // -1 if it is not open

// Stores a place, instead of the oldest if there are too many, and returns its number; 0 if it cannot be stored. Not
// for several threads at once.
std::uint64_t add_place(std::string_view text) noexcept;
bool has_place(std::uint64_t number) noexcept;  // whether it is still stored
// The place of operations that this thread begins from now on; 0 for none.
void set_place(std::uint64_t number) noexcept;

// Records an operation of this thread and sets its start time; returns its number, 0 if it is not recorded.
std::uint64_t begin(Operation& operation) noexcept;
// For the number that begin() returned on this thread: see Ring.
void arrive(std::uint64_t number, bool has_waited) noexcept;
void end(std::uint64_t number, bool has_returned) noexcept;

void count_run() noexcept;  // approximate if several threads call it at once

}  // namespace ringlet::record
