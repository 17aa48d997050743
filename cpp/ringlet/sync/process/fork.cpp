#include "ringlet/sync/process/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace ringlet::sync {

namespace {

std::atomic<std::uint64_t> generation{0};

// relaxed: the child has one thread when this runs.
void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int kRegistered = pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace

// relaxed: the number changes only while there is one thread.
std::uint64_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace ringlet::sync
