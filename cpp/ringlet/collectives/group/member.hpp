// The operations of one rank of a group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ringlet/collectives/call/call.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// A rank of a subgroup.
struct SubgroupMember {
  std::shared_ptr<Group> group;
  int rank;
};

// No call waits longer than the group's time-out. A call that raises MismatchError, AbortedError or DeadlineError
// leaves a failed group. ArgumentError, and std::bad_alloc, come before this rank arrives, so that it may call again;
// only what can be noticed by all ranks together, such as buffers that overlap, leaves a failed group, too. `poll` runs
// periodically while a call waits.
//
// Costs are for S bytes a rank and P ranks: what all of them together read and write. Results without an output are
// read-only: ranks share them wherever they are equal.
class Member {
 public:
  Member(Group& group, int rank) : group_(&group), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  Group& group() const noexcept { return *group_; }
  // How many calls this rank has arrived at.
  std::uint64_t calls() const noexcept;

  // Combines the inputs of all ranks. P*S read and S written once (shared result) or P times.
  Results all_reduce(std::span<const Buffer> buffers, core::Op op, Algorithm algorithm = Algorithm::kAuto,
                     sync::Poll* poll = nullptr);

  // The same for the root alone; the output of other ranks is left out. P*S read, S written.
  Results reduce(const Buffer& part, core::Op op, int root, sync::Poll* poll = nullptr);

  // Rank r gets elements r*n/P .. (r+1)*n/P - 1. An output may be that place of the rank's own input. P*S read, S
  // written.
  Results reduce_scatter(const Buffer& part, core::Op op, sync::Poll* poll = nullptr);

  // Rank r gets the combination of ranks 0 .. r-1, rank 0 what changes nothing. (P-1)*S read, P*S written.
  Results exclusive_scan(const Buffer& part, core::Op op, sync::Poll* poll = nullptr);

  // The arrays of all ranks one after the other along `axis`, where alone their shapes may differ. part.output_length
  // is the length of an output along it. P*S read, P*S written once (shared result) or P times. A second round of
  // arrivals if lengths differ.
  Results all_gather(const Buffer& part, int axis, sync::Poll* poll = nullptr);
  Results gather(const Buffer& part, int root, int axis, sync::Poll* poll = nullptr);

  // Rows of the root's array for each rank: `rows` of the root has the number of each. Ranks other than the root pass
  // at most an output, with its shape and dtype. S read, S written.
  Results scatter(const Buffer& part, std::span<const std::int64_t> rows, int root, sync::Poll* poll = nullptr);

  // Copies the arrays of `root` to every rank. A rank other than the root may pass no buffers and takes shape and dtype
  // from the root: see described_by(). S read, S (shared result) or P*S written.
  Results broadcast(std::span<const Buffer> buffers, bool has_buffers, int root, sync::Poll* poll = nullptr);

  // Block d of each rank's rows goes to rank d. Equal blocks, or `rows` for each rank; then ranks exchange the counts
  // in an earlier round of arrivals. part.output_length is the number of rows of an output. P*S read, P*S written.
  Results all_to_all(const Buffer& part, std::span<const std::int64_t> rows, bool is_ragged,
                     sync::Poll* poll = nullptr);
  // How many rows this rank got from all in its last all_to_all.
  std::int64_t rows_received() const noexcept { return rows_received_; }

  // For each pair (source, target), given one after the other: the target gets the source's array. Others get zeros.
  Results permute(const Buffer& part, std::span<const std::int64_t> pairs, sync::Poll* poll = nullptr);

  void barrier(std::string_view name = {}, sync::Poll* poll = nullptr);

  // The group of all ranks that gave the same color, ordered by (key, rank); null without a color.
  SubgroupMember split(std::optional<int> color, std::int64_t key = 0, sync::Poll* poll = nullptr);

  // What this rank calls from here to end_series is a series. Ranks whose series began with different calls, or of
  // which one is in none, do not make the same call, however alike it is: one of them has left out a call before.
  void begin_series();
  void end_series();

  // The record of `rank` in this rank's last call: what a root passed, what a gather was of. Valid until the next call.
  const Call& record_of(int rank) const;

  // States that this rank makes no more calls: ranks that wait for it, now or later, raise MismatchError. `reason`
  // completes "rank 1 ...". rejoin() takes it back; no rank may be in a call then.
  void depart(std::string_view reason);
  void rejoin();

 private:
  RankState& state() const noexcept;
  void check_root(int root) const;
  Results exchange_blocks(Buffer part, std::span<const std::int64_t> all_rows, sync::Poll* poll);
  std::shared_ptr<Group> split_here(const std::vector<int>& subgroup, bool is_first, sync::Poll* poll);
  std::shared_ptr<Group> split_between(const std::vector<int>& subgroup, bool is_first, sync::Poll* poll);
  Results gather(Kind kind, const Buffer& part, int root, int axis, sync::Poll* poll);

  Group* group_;
  int rank_;
  std::int64_t rows_received_ = 0;
};

}  // namespace ringlet::collectives
