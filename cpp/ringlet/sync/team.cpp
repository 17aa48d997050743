#include "ringlet/sync/team.hpp"

#include <chrono>
#include <memory>
#include <system_error>
#include <thread>

#include "ringlet/core/signals.hpp"
#include "ringlet/sync/fork.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::sync {

namespace {

// How long a helper looks for more work before it sleeps: a step that reduces often finds it awake.
constexpr std::chrono::microseconds kAwake{200};

}  // namespace

Team& Team::shared() {
  static Team* const team = std::make_unique<Team>().release();
  return *team;
}

void Team::share(std::size_t num_chunks, int helpers, Chunk run, void* context) {
  const std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner.owns_lock() || helpers < 1 || num_chunks < 2) {
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) run(context, chunk);
    return;
  }
  enlist(helpers);
  work_ = {num_chunks, run, context};
  share_.reset();
  wanted_.store(helpers);
  turn_.fetch_add(1);
  opened_.notify();
  take_chunks();
  turn_.fetch_add(1);
  while (inside_.load() > 0) std::this_thread::yield();  // each finishes the chunk that it has
}

void Team::enlist(int helpers) {
  if (fork_generation_ != fork_generation()) {  // threads do not survive a fork, what they counted does
    fork_generation_ = fork_generation();
    num_started_ = 0;
    inside_.store(0);
  }
  if (num_started_ >= helpers) return;
  const core::SignalsBlocked blocked;
  for (; num_started_ < helpers; ++num_started_) {
    try {
      std::thread([this, number = num_started_] { help(number); }).detach();
    } catch (const std::system_error&) {
      return;  // no more threads to be had: the work is done all the same
    }
  }
}

void Team::take_chunks() noexcept {
  const Work work = work_;
  for (std::size_t chunk = 0; (chunk = share_.take(work.num_chunks)) < work.num_chunks;) {
    work.run(work.context, chunk);
  }
}

bool Team::has_news(int number, std::uint64_t seen) const noexcept {
  const std::uint64_t turn = turn_.load();
  return turn % 2 == 1 && turn != seen && number < wanted_.load();
}

void Team::help(int number) {
  std::uint64_t seen = 0;
  const auto is_ready = [&] { return has_news(number, seen); };
  for (;;) {
    wait_until(opened_, {.spins = 0, .yields = kAwake}, kForever, nullptr, is_ready);
    inside_.fetch_add(1);
    seen = turn_.load();
    if (seen % 2 == 1) take_chunks();
    inside_.fetch_sub(1);
  }
}

}  // namespace ringlet::sync
