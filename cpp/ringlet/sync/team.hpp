// Threads that help one controlling thread with its work.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/event.hpp"

namespace ringlet::sync {

// Processes one piece of work after the other, each divided into numbered chunks. Helpers are started on first use,
// stay for the life of the process, and sleep between pieces of work; they never use an interpreter. After a fork, the
// child starts its own helpers.
//
// Terms. A piece of work is *open* while chunks of it may be taken. A helper *enters* before it looks whether work is
// open, and leaves after its last chunk. The owner closes the work and then waits until no helper is inside. In the
// single order of these operations, either a helper that enters sees that the work is closed, or the owner sees the
// helper inside, so no helper accesses work that its owner has left.
class Team {
 public:
  using Chunk = void (*)(void* context, std::size_t chunk) noexcept;

  // The team of this process. It is never destroyed: its threads may outlive everything else.
  static Team& shared();

  // Calls run(context, chunk) for each chunk below `num_chunks`, on this thread and up to `helpers` others. While
  // another thread uses the team, on this thread alone.
  void share(std::size_t num_chunks, int helpers, Chunk run, void* context);

 private:
  struct Work {
    std::size_t num_chunks = 0;
    int num_workers = 0;
    Chunk run = nullptr;
    void* context = nullptr;
  };

  static constexpr int kMostWorkers = 64;

  void enlist(int helpers) noexcept;
  void help(int number);
  void take_chunks(int worker) noexcept;
  bool has_news(int number, std::uint64_t seen) const noexcept;

  std::mutex owner_;  // held by the thread that uses the team
  Work work_;
  std::array<WorkQueue, kMostWorkers> shares_;  // share of the owner, then those of the helpers
  Event opened_;
  std::atomic<std::uint64_t> turn_{0};  // odd while work is open
  std::atomic<int> wanted_{0};          // helpers numbered below this may enter
  std::atomic<int> inside_{0};
  int num_started_ = 0;  // written by the owner
  std::uint64_t fork_generation_ = 0;
};

}  // namespace ringlet::sync
