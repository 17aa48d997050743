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

// A rank of a subgroup, with the ranks of the subgroup in its parent and their labels.
struct SubgroupMember {
  std::shared_ptr<Group> group;
  int rank = -1;
  std::vector<int> ranks;
  std::vector<std::int64_t> labels;
};

// No call waits longer than the group's time-out. A call that raises MismatchError, AbortedError or DeadlineError
// leaves a failed group. ArgumentError and std::bad_alloc are raised before this rank arrives, so that it may call
// again. Errors that only all ranks together can detect, such as overlapping buffers, leave a failed group. `poll` runs
// periodically while a call waits.
//
// Costs are the bytes that all ranks together read and write, for S bytes a rank and P ranks. Results without an output
// are read-only, because ranks share equal results.
class Member {
 public:
  Member(Group& group, int rank) : group_(&group), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  Group& group() const noexcept { return *group_; }
  // The number of calls at which this rank has arrived.
  std::uint64_t calls() const noexcept;

  // Combines the inputs of all ranks. P*S read and S written once (shared result) or P times.
  Results all_reduce(std::span<const Buffer> buffers, core::Op op, Algorithm algorithm = Algorithm::kAuto,
                     sync::Poll* poll = nullptr);

  // Combines the inputs of all ranks to the root's output. A `name` replaces the description of the call in comparisons
  // and reports. P*S read, S written.
  Results reduce(const Buffer& part, core::Op op, int root, sync::Poll* poll = nullptr, std::string_view name = {});

  // Rank r gets elements r*n/P .. (r+1)*n/P - 1. An output may be these elements of the rank's own input. P*S read, S
  // written.
  Results reduce_scatter(const Buffer& part, core::Op op, sync::Poll* poll = nullptr);

  // Rank r gets the combination of ranks 0 .. r-1; rank 0 gets the identity of the operation. (P-1)*S read, P*S
  // written.
  Results exclusive_scan(const Buffer& part, core::Op op, sync::Poll* poll = nullptr);

  // Concatenates the arrays of all ranks along `axis`, the only dimension in which their shapes may differ.
  // part.output_length is the length of an output along `axis`. P*S read, P*S written once (shared result) or P times.
  // A second round of arrivals if lengths differ.
  Results all_gather(const Buffer& part, int axis, sync::Poll* poll = nullptr);
  Results gather(const Buffer& part, int root, int axis, sync::Poll* poll = nullptr);

  // Distributes rows of the root's array; the root's `rows` has the number for each rank. Ranks other than the root
  // pass at most an output, with its shape and dtype. S read, S written.
  Results scatter(const Buffer& part, std::span<const std::int64_t> rows, int root, sync::Poll* poll = nullptr);

  // Copies the arrays of `root` to every rank. A rank other than the root may pass no buffers and takes shape and dtype
  // from the root: see described_by(). S read, S (shared result) or P*S written.
  Results broadcast(std::span<const Buffer> buffers, bool has_buffers, int root, sync::Poll* poll = nullptr);

  // Block d of each rank's rows goes to rank d. Blocks are equal, or `rows` has the number of rows for each rank; ranks
  // then first exchange the counts in a round of arrivals. part.output_length is the number of rows of an output. P*S
  // read, P*S written.
  Results all_to_all(const Buffer& part, std::span<const std::int64_t> rows, bool is_ragged,
                     sync::Poll* poll = nullptr);
  // The number of rows that this rank got in its last all_to_all.
  std::int64_t rows_received() const noexcept { return rows_received_; }

  // For each consecutive pair (source, target), the target gets the source's array. Other ranks get zeros.
  Results permute(const Buffer& part, std::span<const std::int64_t> pairs, sync::Poll* poll = nullptr);

  void barrier(std::string_view name = {}, sync::Poll* poll = nullptr);

  // The group of all ranks that passed the same color, ordered by (key, rank); null without a color.
  SubgroupMember split(std::optional<int> color, std::int64_t key = 0, sync::Poll* poll = nullptr,
                       std::int64_t label = 0);

  // Begins a series: the calls of this rank until end_series. Calls of ranks whose series began with different calls,
  // or of a rank outside of a series, do not match even if they are equal: one rank has omitted an earlier call.
  void begin_series();
  void end_series();

  // From now on, this rank waits longer than the group's time-out: for a rank that itself waits for other hosts.
  void set_extra_time(sync::Clock::duration extra_time);

  // The record of `rank` in this rank's last call, such as the arguments of the root. Valid until the next call.
  const Call& record_of(int rank) const;

  // States that this rank makes no more calls: ranks that wait for it, now or later, raise MismatchError. `reason`
  // completes "rank 1 ...". rejoin() revokes this; no rank may then be in a call.
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
