#include "ringlet/sync/team.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "ringlet/sync/process/fork.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::sync {

namespace {

// The time for which a helper looks for more work before it sleeps; in a step with many reductions, it stays awake.
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
  const int num_workers = std::min(helpers + 1, kMostWorkers);
  enlist(num_workers - 1);
  work_ = {num_chunks, num_workers, run, context};
  for (int worker = 0; worker < num_workers; ++worker) shares_[static_cast<std::size_t>(worker)].reset();
  wanted_.store(num_workers - 1);
  turn_.fetch_add(1);
  opened_.notify();
  take_chunks(0);
  turn_.fetch_add(1);
  while (inside_.load() > 0) std::this_thread::yield();  // each helper finishes its current chunk
}

void Team::enlist(int helpers) noexcept {
  if (fork_generation_ != fork_generation()) {  // threads do not survive a fork, but their counts do
    fork_generation_ = fork_generation();
    num_started_ = 0;
    inside_.store(0);
  }
  if (num_started_ >= helpers) return;
  // Helpers start with all signals blocked; signals are for threads that expect them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (; num_started_ < helpers; ++num_started_)
      std::thread([this, number = num_started_] { help(number); }).detach();
  } catch (const std::exception&) {  // no more threads can be started: the work is done without them
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Team::take_chunks(int worker) noexcept {
  const Work work = work_;
  const auto first_of = [&](int owner) {
    return work.num_chunks * static_cast<std::size_t>(owner) / static_cast<std::size_t>(work.num_workers);
  };
  for (int i = 0; i < work.num_workers; ++i) {
    const int owner = (worker + i) % work.num_workers;
    const std::size_t first = first_of(owner);
    const std::size_t share = first_of(owner + 1) - first;
    WorkQueue& chunks = shares_[static_cast<std::size_t>(owner)];
    for (std::size_t taken = 0; (taken = chunks.take(share)) < share;) work.run(work.context, first + taken);
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
    if (seen % 2 == 1) take_chunks(number + 1);
    inside_.fetch_sub(1);
  }
}

}  // namespace ringlet::sync
