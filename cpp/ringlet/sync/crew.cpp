#include "ringlet/sync/crew.hpp"

namespace ringlet::sync {

void Crew::open() noexcept {
  num_finished_.store(0);
  takes_turns_.store(false);
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

// A helper clears the summons before and after it looks for work. In the single order of these operations, either the
// helper sees the unclaimed replica, or this function sees no summons and sends one.
void Crew::summon() noexcept {
  if (!is_summoned_.exchange(true)) work_.notify_one();
}

void Crew::summon_all() noexcept {
  takes_turns_.store(num_replicas_ <= usable_cores());
  if (has_unclaimed()) work_.notify();
}

void Crew::finish(int replica) noexcept {
  is_running_[static_cast<std::size_t>(replica)].set(false);
  if (num_finished_.fetch_add(1) + 1 == num_replicas_) finished_.notify();
}

bool Crew::wait_finished(Clock::duration timeout, Poll* poll) {
  constexpr Patience kPatience{.spins = 0, .yields = std::chrono::microseconds(100)};
  return wait_until(finished_, kPatience, timeout, poll, [this] { return num_finished_.load() == num_replicas_; });
}

std::vector<int> Crew::running() const {
  std::vector<int> replicas;
  for (int replica = 0; replica < num_replicas_; ++replica) {
    if (is_running(replica)) replicas.push_back(replica);
  }
  return replicas;
}

bool Crew::wait_for_work() {
  is_summoned_.store(false);
  look_for_work_awhile();
  while (!has_unclaimed() && !is_closed_.load()) {
    is_summoned_.store(false);
    const std::uint32_t ticket = work_.enlist();
    if (!has_unclaimed() && !is_closed_.load()) work_.park(ticket, std::chrono::hours(1));
    work_.leave();
  }
  is_summoned_.store(false);
  return !is_closed_.load();
}

// Steps often follow each other closely, and a spinning helper starts sooner than a sleeping one. One core is reserved
// for the thread that opens runs.
void Crew::look_for_work_awhile() noexcept {
  constexpr std::chrono::microseconds kAwhile{100};
  if (num_looking_.fetch_add(1) + 1 < usable_cores()) {
    const auto has_work_or_is_closed = [this] { return has_unclaimed() || is_closed_.load(); };
    if (!has_work_or_is_closed()) yield_until(kAwhile, has_work_or_is_closed);
  }
  num_looking_.fetch_sub(1);
}

void Crew::close() noexcept {
  is_closed_.store(true);
  work_.notify();
}

}  // namespace ringlet::sync
