// What it costs to hand a word from one core, or one thread, to another.
#pragma once

#include <string>
#include <vector>

namespace ringlet::bench {

// JSON object of medians over `rounds`, in nanoseconds:
//   line_transfer  one cache line written by one core and seen by another, one way (null with one core)
//   futex_wake     a parked thread on another core made to run, one way (null with one core)
//   switch         from one thread to the next on the same core by sched_yield
std::string latencies(const std::vector<int>& cores, int rounds);

}  // namespace ringlet::bench
