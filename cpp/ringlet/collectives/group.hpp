// Replica threads of one process that compute together.
//
// Terms. A *rank* is one of the P members, driven by one thread at a time. The calls of a rank are numbered from 1; all
// ranks make the same calls in the same order. A rank *arrives* at a call by publishing its slot. A call *goes* once
// all have arrived; ranks that wait do its work, chunk by chunk. A group that has *failed* raises its first cause for
// ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/collectives/call.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

struct RankState;
class Member;

struct Options {
  sync::Clock::duration timeout = sync::kForever;  // how long a rank waits for the others to arrive
  std::uint64_t epoch = 0;                         // tells apart the groups that a strategy makes one after the other
  bool from_interpreter = false;                   // the ranks are Python threads, which must not spin
};

// One block per part when no outputs were given, else nothing.
using Results = std::vector<memory::Block>;

class Group {
 public:
  explicit Group(int num_ranks, const Options& options = {});
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int num_ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  std::uint64_t epoch() const noexcept { return options_.epoch; }
  // The handle of one rank. The group must outlive it.
  Member member(int rank);

  // Makes every waiting and every later call raise AbortedError with this cause, unless the group has failed before.
  void abort(std::string_view reason);
  std::optional<std::string> failure() const;

 private:
  friend class Member;
  friend class Round;

  enum class Cause { kAborted, kMismatch, kDeadline, kArgument };
  struct Failure {
    Cause cause;
    std::string text;
  };

  bool was_forked() const noexcept;
  void fail(Cause cause, std::string text);
  [[noreturn]] void raise_failure() const;

  Options options_;
  sync::Patience patience_;
  std::uint64_t fork_generation_;
  std::vector<std::unique_ptr<RankState>> ranks_;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  mutable std::mutex failure_mutex_;  // guards the texts below; never held while waiting
  std::optional<Failure> failure_;
  std::vector<std::string> departures_;
};

// What one rank can do. No call waits longer than the group's time-out. A call that raises MismatchError, AbortedError
// or DeadlineError leaves a failed group. ArgumentError, and std::bad_alloc, come before this rank arrives, so that it
// may call again; only buffers that overlap are noticed later, by all ranks, and then the group has failed, too. `poll`
// runs now and then while a call waits.
class Member {
 public:
  Member(Group& group, int rank) : group_(&group), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  Group& group() const noexcept { return *group_; }
  // How many calls this rank has arrived at.
  std::uint64_t calls() const noexcept;

  // Combines the inputs of all ranks. Cost for S bytes a rank and P ranks, moved by all of them together: DIRECT one
  // step, P*S bytes read and S written once (shared result) or P times; RING 2(P-1) steps, 2S(P-1)/P bytes a rank.
  Results all_reduce(std::span<const Part> parts, core::Op op, Algorithm algorithm = Algorithm::kAuto,
                     sync::Poll* poll = nullptr);

  // Gives every rank the arrays of `root`. A rank other than the root may pass no parts and takes shape and dtype from
  // the root: see described_by().
  Results broadcast(std::span<const Part> parts, bool has_parts, int root, sync::Poll* poll = nullptr);

  // The parts that the root of the last broadcast passed; valid until this rank's next call.
  std::span<const Part> described_by(int root) const;

  void barrier(std::string_view name = {}, sync::Poll* poll = nullptr);

  // States that this rank makes no more calls: ranks that wait for it, now or later, raise MismatchError. `reason`
  // completes "rank 1 ...". rejoin() takes it back; nobody may be in a call then.
  void depart(std::string_view reason);
  void rejoin();

 private:
  Group* group_;
  int rank_;
};

// Combines the buffers of one controlling thread in the tree order: inputs[k] has the part that rank k would have.
void reduce_buffers(std::span<const void* const> inputs, std::size_t count, core::DType dtype, core::Op op,
                    void* output);

}  // namespace ringlet::collectives
