// Reports about the ranks' threads from their owner, such as an interpreter.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ringlet/sync/counters.hpp"

namespace ringlet::collectives {

// A rank of this process and the thread that made its last call (as an integer; 0 before its first call).
struct RankThread {
  int rank;
  std::uint64_t thread;
  bool is_in_call;
};

// The calling thread as an integer: the same as threading.get_ident() of Python.
inline std::uint64_t this_thread() noexcept { return (std::uint64_t)pthread_self(); }

// Functions may block, for the interpreter lock, but must not throw.
class ThreadReports {
 public:
  // The signal that makes this process print the stacks of all threads on its standard error, even while a thread holds
  // the interpreter lock; 0 for none.
  virtual int stack_signal() = 0;
  // The place in the program where the calling thread makes its call: "in step (train.py:88)"; empty if unknown.
  virtual std::string call_site() = 0;
  // A text for each rank, in order, with the place that its thread executes.
  virtual std::vector<std::string> stacks(std::span<const RankThread> ranks) = 0;
  // Logs a warning, unless `is_logged` has been claimed.
  virtual void log(const std::string& text, sync::Flag& is_logged) = 0;

 protected:
  ~ThreadReports() = default;
};

// Sets the source of all groups of this process, once, before the first group. Without one, stalls are reported on
// standard error, without stacks.
void set_thread_reports(ThreadReports& reports) noexcept;
ThreadReports* thread_reports() noexcept;

}  // namespace ringlet::collectives
