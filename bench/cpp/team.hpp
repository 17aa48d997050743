// Threads that start a region together, each pinned to a core of its own, and the memory that they work on.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace ringlet::bench {

// The cores that this process may run on, in ascending order.
inline std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

inline void pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // unpinned is noisier, not wrong
}

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Lets `num_threads` threads go at once, over and over; waits by yielding, so that more threads than cores progress.
class StartLine {
 public:
  explicit StartLine(std::size_t num_threads) : num_threads_(num_threads) {}

  void wait() {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    // acq_rel: the last to arrive has seen what all others did before, and publishes it with the round below.
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
      arrived_.store(0, std::memory_order_relaxed);  // ordered before the next arrivals by the release below
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (std::uint32_t spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins > 1000) sched_yield();
    }
  }

 private:
  std::size_t num_threads_;
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::uint64_t> round_{0};
};

// Runs `body(thread)` on one pinned thread for each of `cores`, and waits for all. Cores may repeat.
template <class Body>
void on_cores(const std::vector<int>& cores, Body&& body) {
  std::vector<std::jthread> threads;
  threads.reserve(cores.size());
  for (std::size_t thread = 0; thread < cores.size(); ++thread) {
    threads.emplace_back([&body, &cores, thread] {
      pin_this_thread(cores[thread]);
      body(thread);
    });
  }
}

// Anonymous memory at a 2 MiB boundary, on huge pages where the system grants them; touched by who uses it first.
class Pages {
 public:
  explicit Pages(std::size_t size_bytes) : mapped_bytes_(size_bytes + kHugePage) {
    mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    data_ = reinterpret_cast<std::byte*>((address + kHugePage - 1) / kHugePage * kHugePage);
    (void)madvise(data_, size_bytes, MADV_HUGEPAGE);  // small pages are slower, not wrong
  }
  ~Pages() { munmap(mapping_, mapped_bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::size_t mapped_bytes_;
  void* mapping_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace ringlet::bench
