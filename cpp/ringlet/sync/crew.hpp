// Assignment of the replicas of a step to threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/event.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::sync {

// Replicas are claimed in order from a counter, by the thread that opened the run and by helper threads that park here.
// At most one helper is being woken at a time; a thread that claims a replica while more remain wakes the next helper,
// so a run whose replicas never block costs one wake for any number of replicas.
class Crew {
 public:
  static constexpr int kNone = -1;

  explicit Crew(int num_replicas) : num_replicas_(num_replicas), is_running_(static_cast<std::size_t>(num_replicas)) {
    next_.store(num_replicas);
  }

  // Whether the threads of the current run, or of the last one, need the interpreter at the same time: after
  // summon_all(), if each replica can have a core. In other runs the calling thread often runs all replicas by itself.
  bool takes_turns() const noexcept { return takes_turns_.load(); }
  // Starts a run. The previous run must be finished.
  void open() noexcept;
  // The next replica, or kNone.
  int claim() noexcept;
  // Wakes every parked helper if replicas are unclaimed; for a thread that is about to wait for all replicas. From then
  // on the threads take turns.
  void summon_all() noexcept;
  void finish(int replica) noexcept;
  // False if `timeout` passed before all replicas of the run had finished.
  bool wait_finished(Clock::duration timeout, Poll* poll);
  bool is_running(int replica) const noexcept {
    return replica >= 0 && replica < num_replicas_ && is_running_[static_cast<std::size_t>(replica)].is_set();
  }
  // The replicas that are claimed but not finished.
  std::vector<int> running() const;

  // Parks a helper until a replica may be unclaimed; false once the crew is closed.
  bool wait_for_work();
  void close() noexcept;

 private:
  bool has_unclaimed() const noexcept { return next_.load() < num_replicas_; }
  void summon() noexcept;
  void look_for_work_awhile() noexcept;

  const int num_replicas_;
  alignas(kCacheLine) std::atomic<int> next_{0};
  std::atomic<bool> is_summoned_{false};
  std::atomic<bool> is_closed_{false};
  std::atomic<bool> takes_turns_{false};
  std::atomic<int> num_looking_{0};
  std::atomic<int> num_finished_{0};
  std::deque<Flag> is_running_;
  Event work_;
  Event finished_;
};

}  // namespace ringlet::sync
