#include "ringlet/memory/pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "ringlet/memory/idle.hpp"
#include "ringlet/memory/poison.hpp"
#include "ringlet/memory/size_class.hpp"

namespace ringlet::memory {

namespace {

// Rounds sizes of a huge page or more up to whole huge pages.
std::size_t pooled_size(std::size_t bytes) {
  const std::size_t rounded = size_class(bytes, Region::kAlignment);
  if (rounded < Region::kHugePage) return rounded;
  return (rounded + Region::kHugePage - 1) / Region::kHugePage * Region::kHugePage;
}

// During the life of this object, threads start with all signals blocked: signals of the process are for threads that
// expect them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// State that the pool shares with its thread, the reaper.
struct Pool::State {
  // Held while regions are unmapped, which may take a long time and must not block allocations. Taken before `mutex`.
  std::mutex dropping;
  std::mutex mutex;  // guards all members below
  Clock::duration keep_idle;
  IdleRegions idle;
  std::size_t live_blocks = 0;
  std::size_t live_bytes = 0;
  bool has_reaper = false;
  Clock::time_point next_start{};  // no attempt to start a reaper before this time

  // Maximum delay of the reaper, and the wait after a failed attempt to start one.
  Clock::duration slack() const { return keep_idle / 10; }

  void count_live(std::size_t bytes) {
    live_blocks += 1;
    live_bytes += bytes;
  }

  // Takes an idle region, which is then live, or null.
  std::unique_ptr<Region> take(std::size_t bytes);
  // Returns the time of the first reap if the caller must start a reaper.
  std::optional<Clock::time_point> take_back(std::unique_ptr<Region> region) noexcept;
  // Releases stale regions. Returns the time of the next reap; nothing if no region is idle.
  std::optional<Clock::time_point> reap() noexcept;

  static void start_reaper(const std::shared_ptr<State>& state, Clock::time_point first) noexcept;
  static void run_reaper(const std::weak_ptr<State>& pool, Clock::time_point first);
};

std::unique_ptr<Region> Pool::State::take(std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Region> region = idle.take(bytes);
  if (region != nullptr) count_live(bytes);
  return region;
}

std::optional<Pool::Clock::time_point> Pool::State::take_back(std::unique_ptr<Region> region) noexcept {
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex);
  live_blocks -= 1;
  live_bytes -= region->size();
  try {
    idle.put(std::move(region), now);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // `region` has freed the memory
  }
  if (has_reaper || now < next_start) return std::nullopt;
  has_reaper = true;
  next_start = now + slack();
  return now + keep_idle;
}

std::optional<Pool::Clock::time_point> Pool::State::reap() noexcept {
  const std::scoped_lock lock_dropping(dropping);
  const auto now = Clock::now();
  for (;;) {
    std::unique_ptr<Region> stale;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex);
    stale = idle.take_stale(now - keep_idle);
    if (stale != nullptr) continue;
    const auto oldest = idle.oldest();
    has_reaper = oldest.has_value();
    if (!has_reaper) return std::nullopt;
    return std::max(*oldest + keep_idle, now + slack());
  }
}

void Pool::State::start_reaper(const std::shared_ptr<State>& state, Clock::time_point first) noexcept {
  try {
    const SignalsBlocked blocked;
    std::thread(run_reaper, std::weak_ptr(state), first).detach();
  } catch (const std::exception&) {  // no thread can be started: the caller does the work
    state->reap();
    const std::scoped_lock lock(state->mutex);
    state->has_reaper = false;
  }
}

// Alternately sleeps and reaps. While asleep, it holds neither the pool, nor a lock for which a fork would wait, nor a
// place at a condition variable, which a forked child would count for ever.
void Pool::State::run_reaper(const std::weak_ptr<State>& pool, Clock::time_point first) {
  for (std::optional next = first; next.has_value();) {
    std::this_thread::sleep_until(*next);
    const std::shared_ptr<State> state = pool.lock();
    if (state == nullptr) return;
    next = state->reap();
  }
}

Pool::Pool(Clock::duration keep_idle) : state_(std::make_shared<State>()) { set_keep_idle(keep_idle); }

Block Pool::allocate(std::size_t bytes) {
  if (bytes <= kFromHeap) {
    auto small = std::make_shared<Region>(bytes);
    poison(small->data(), bytes);
    return small;
  }
  const std::size_t wanted = pooled_size(bytes);
  std::unique_ptr<Region> region = state_->take(wanted);
  if (region == nullptr) {
    region = std::make_unique<Region>(wanted);
    const std::scoped_lock lock(state_->mutex);
    state_->count_live(wanted);
  }
  poison(region->data(), bytes);
  return {region.release(), [this](Region* last) {
            const auto first = state_->take_back(std::unique_ptr<Region>(last));
            if (first.has_value()) State::start_reaper(state_, *first);
          }};
}

std::size_t Pool::trim() {
  const std::scoped_lock lock_dropping(state_->dropping);
  IdleRegions dropped;
  {
    const std::scoped_lock lock(state_->mutex);
    std::swap(dropped, state_->idle);
  }
  return dropped.bytes();
}

PoolStatistics Pool::statistics() const {
  const std::scoped_lock lock(state_->mutex);
  return {.live_blocks = state_->live_blocks,
          .live_bytes = state_->live_bytes,
          .idle_blocks = state_->idle.blocks(),
          .idle_bytes = state_->idle.bytes()};
}

void Pool::set_keep_idle(Clock::duration keep_idle) {
  constexpr Clock::duration kLongest = std::chrono::hours(24 * 365);  // so that no sum with it overflows
  const std::scoped_lock lock(state_->mutex);
  state_->keep_idle = std::clamp(keep_idle, Clock::duration::zero(), kLongest);
}

void Pool::before_fork() {
  state_->dropping.lock();
  state_->mutex.lock();
}

void Pool::after_fork(bool is_child) {
  if (is_child) {
    state_->has_reaper = false;
    state_->next_start = {};
  }
  state_->mutex.unlock();
  state_->dropping.unlock();
}

Pool& result_pool() {
  static Pool* const pool = [] {
    auto made = std::make_unique<Pool>();
    pthread_atfork([] { result_pool().before_fork(); }, [] { result_pool().after_fork(false); },
                   [] { result_pool().after_fork(true); });
    return made.release();
  }();
  return *pool;
}

}  // namespace ringlet::memory
