// Ranks that compute together: threads of one process, or of several processes of one host.
//
// Terms. A *rank* is one of the P members, driven by one thread at a time. The calls of a rank are numbered from 1; all
// ranks make the same calls in the same order. A rank *arrives* at a call by publishing its slot. A call *goes* once
// all have arrived; waiting ranks do its work, chunk by chunk. A group that has *failed* always raises its first error.
// A rank is *here* if it belongs to this process; each process has a Group object of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/collectives/call/call.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

class ControlBlock;
class Member;
class BufferName;
class World;
struct RankThread;
struct RemoteCall;
struct RankState;

struct Options {
  sync::Clock::duration timeout = sync::kForever;    // how long a rank waits for the others to arrive
  sync::Clock::duration stall = sync::kForever;      // how long a rank waits before it reports the stall
  std::optional<sync::Clock::duration> remaining{};  // part of the time-out left to create the group; default: all
  std::uint64_t epoch = 0;                           // distinguishes the successive groups of a strategy
  bool from_interpreter = false;                     // the ranks are Python threads, which must not spin
};

class Group {
 public:
  // A group of threads of this process, or of all ranks of a world, in which every process makes the group: the
  // constructor then waits for the others, at most for the time-out. `poll` runs periodically during the wait and may
  // end it.
  explicit Group(int num_ranks, const Options& options = {}, std::shared_ptr<World> world = nullptr,
                 sync::Poll* poll = nullptr);
  // Constructor of a subgroup between processes: used by join_subgroup only.
  struct SubgroupOf;
  explicit Group(SubgroupOf subgroup);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int num_ranks() const noexcept { return static_cast<int>(states_.size()); }
  int num_ranks_here() const noexcept { return num_ranks_here_; }
  bool is_here(int rank) const noexcept { return states_[static_cast<std::size_t>(rank)] != nullptr; }
  // The process of a rank, by its number in the world; 0 among threads.
  int process_of(int rank) const noexcept;
  std::uint64_t epoch() const noexcept { return options_.epoch; }
  const std::shared_ptr<World>& world() const noexcept { return world_; }  // null for threads of this process
  // The handle of one rank that is here (see member.hpp). The group must outlive it.
  Member member(int rank);

  // Makes every waiting and later call of the group and its subgroups raise AbortedError with this cause, unless the
  // group has already failed.
  void abort(std::string_view reason);
  std::optional<std::string> failure() const;
  // Logs a text about a wait, and what every rank executes.
  void report_stall(const std::string& waiting, const std::vector<bool>& is_missing) {
    log_stall(waiting + describe_ranks(is_missing));
  }

 private:
  friend class CallBuffers;
  friend class CallResults;
  friend class CallView;
  friend class Member;
  friend class RankWaits;
  friend class Round;
  friend class World;

  enum class Cause : std::uint8_t { kAborted, kMismatch, kDeadline, kArgument, kLost };
  struct Failure {
    Cause cause = Cause::kAborted;
    std::string text;
    int lost_process = 0;
    std::string reason = {};  // how it ended
  };

  // A group of some ranks of this group.
  struct Subgroup {
    std::weak_ptr<Group> group;
    std::vector<int> ranks;            // ranks in this group, indexed by rank in the subgroup
    std::uint64_t name = 0;            // name of its control block, between processes
    std::shared_ptr<Group> kept = {};  // keeps the group until all of its ranks that are here have joined
    int num_awaited = 0;
  };

  void join_world(sync::Poll* poll);
  void make_states();
  bool was_forked() const noexcept;
  bool has_failed() const noexcept;

  void fail(Cause cause, std::string text);
  // Records a failure without notifying subgroups and other processes; false if the group has already failed.
  bool claim_failure(Failure failure);
  Failure first_failure() const;
  std::string text_of(const Failure& failure, const std::string& waiting = {}) const;
  // `waiting` names the waiting call, if any.
  [[noreturn]] void raise_failure(const std::string& waiting = {}) const;

  // Called by the World, on any thread, when a process has ended; returns whether this group lost ranks.
  bool lose(int process, const std::string& reason) noexcept;
  void follow_parent() noexcept;
  void forget(const Group& parent) noexcept;

  // For reports of stalls: see stall.cpp.
  std::vector<RankThread> threads_here() const;
  void answer(const std::vector<std::string>& stacks) noexcept;  // between processes: answers a request
  std::vector<std::string> all_stacks();
  std::string describe_ranks(const std::vector<bool>& is_missing);  // what the ranks execute, one line or more for each
  void log_stall(std::string text);

  // Between processes: keeps memory that other ranks may still read or write until they no longer access it.
  void retire() noexcept;
  // After a call that a remote rank has not left: keeps the shared outputs of this rank, even if the caller releases
  // them, and the results that it announced, even if no process holds them, until that rank has left the call.
  void keep_memory(int rank, std::uint64_t sequence) noexcept;

  // Creates a group of these ranks, which fails when this group does.
  std::shared_ptr<Group> make_subgroup(const std::vector<int>& ranks);
  // Subgroups between processes: one rank creates the control block, then each rank of the subgroup joins it.
  memory::Block make_subgroup_control(const std::vector<int>& ranks, BufferName& place, sync::Poll* poll);
  std::shared_ptr<Group> join_subgroup(const std::vector<int>& ranks, BufferName place, sync::Poll* poll);
  std::shared_ptr<Group> find_subgroup(BufferName place);
  // From now on, a failure of this group is sent to all processes. Every process calls this, also if it joins no
  // subgroup, before a process can join one: a failure that is claimed earlier is found when the subgroup is added.
  void mark_split();

  // The call of a remote rank, cached in the state of a local rank.
  RemoteCall& remote_call(RankState& state, int rank, std::uint64_t sequence);

  void depart(int rank, std::string_view reason);
  void rejoin(int rank);
  // Calls f(member) for this rank in each of its subgroups.
  template <class F>
  void for_each_subgroup_of(int rank, F&& f);

  Options options_;
  std::shared_ptr<World> world_;
  sync::Patience patience_;
  std::uint64_t fork_generation_;
  memory::Block memory_;  // memory of the control block
  std::unique_ptr<ControlBlock> control_;
  std::vector<std::unique_ptr<RankState>> states_;  // null for ranks of other processes
  std::vector<int> process_of_;                     // process of each rank; empty for threads of this process
  int num_ranks_here_ = 0;
  bool shares_processes_ = false;     // whether some process has several ranks
  Group* parent_ = nullptr;           // between processes; guarded by the World
  mutable std::mutex failure_mutex_;  // guards all members below; never held while waiting
  mutable std::optional<Failure> failure_;
  std::vector<Subgroup> subgroups_;
  bool was_split_ = false;
  std::mutex join_mutex_;  // held while a subgroup is joined; taken before failure_mutex_
};

}  // namespace ringlet::collectives
