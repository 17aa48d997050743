#include "ringlet/sync/crew.hpp"

namespace ringlet::sync {

void Crew::open() noexcept {
  num_finished_.store(0);
  next_.store(0);
}

int Crew::claim() noexcept {
  int claimed = next_.load();
  do {
    if (claimed >= num_replicas_) return kNone;
  } while (!next_.compare_exchange_weak(claimed, claimed + 1));
  is_running_[static_cast<std::size_t>(claimed)].set(true);
  if (claimed + 1 < num_replicas_) summon();
  return claimed;
}

// A helper that wakes takes the summons back before it looks for work. In the single order of these operations either it
// sees the replica that is unclaimed now, or this sees no summons and sends one.
void Crew::summon() noexcept {
  if (!is_summoned_.exchange(true)) work_.notify_one();
}

void Crew::finish(int replica) noexcept {
  is_running_[static_cast<std::size_t>(replica)].set(false);
  if (num_finished_.fetch_add(1) + 1 == num_replicas_) finished_.notify();
}

bool Crew::wait_finished(Clock::duration timeout, Poll* poll) {
  constexpr Patience kPatience{.spins = 0, .yields = std::chrono::microseconds(20)};
  return wait_until(finished_, kPatience, timeout, poll, [this] { return num_finished_.load() == num_replicas_; });
}

std::vector<int> Crew::running() const {
  std::vector<int> replicas;
  for (int replica = 0; replica < num_replicas_; ++replica) {
    if (is_running_[static_cast<std::size_t>(replica)].is_set()) replicas.push_back(replica);
  }
  return replicas;
}

bool Crew::wait_for_work() {
  for (;;) {
    is_summoned_.store(false);
    const std::uint32_t ticket = work_.enlist();
    const bool is_ready = has_unclaimed() || is_closed_.load();
    if (!is_ready) work_.park(ticket, std::chrono::hours(1));
    work_.leave();
    if (is_ready) return !is_closed_.load();
  }
}

void Crew::close() noexcept {
  is_closed_.store(true);
  work_.notify();
}

}  // namespace ringlet::sync
