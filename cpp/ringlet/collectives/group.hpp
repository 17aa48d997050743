// Replica threads of one process that compute together.
//
// Terms. A *rank* is one of the P members, driven by one thread at a time. The calls of a rank are numbered from 1; all
// ranks make the same calls in the same order. A rank *arrives* at a call by publishing its slot. A call *goes* once
// all have arrived; ranks that wait do its work, chunk by chunk. A group that has *failed* raises its first cause for
// ever.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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

class Group {
 public:
  explicit Group(int num_ranks, const Options& options = {});
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int num_ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  std::uint64_t epoch() const noexcept { return options_.epoch; }
  // The handle of one rank, as member.hpp has it. The group must outlive it.
  Member member(int rank);

  // Makes every waiting and every later call raise AbortedError with this cause, unless the group has failed before;
  // the parts that it was split into, too.
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

  // A group that some ranks of this one make up.
  struct Part {
    std::weak_ptr<Group> group;
    std::vector<int> ranks;  // in this group, by rank of the part
  };

  bool was_forked() const noexcept;
  void fail(Cause cause, std::string text);
  // Makes the group of these ranks, which fails when this one does.
  std::shared_ptr<Group> make_part(const std::vector<int>& ranks);
  void depart(int rank, std::string_view reason);
  void rejoin(int rank);
  // Calls f(member) with what this rank is in the parts that it belongs to.
  template <class F>
  void for_each_part_of(int rank, F&& f);
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
  std::vector<Part> parts_;
};

}  // namespace ringlet::collectives
