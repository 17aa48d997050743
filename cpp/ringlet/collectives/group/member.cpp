#include "ringlet/collectives/group/member.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "ringlet/collectives/algorithms/data_movement.hpp"
#include "ringlet/collectives/algorithms/direct.hpp"
#include "ringlet/collectives/algorithms/gather.hpp"
#include "ringlet/collectives/algorithms/reductions.hpp"
#include "ringlet/collectives/algorithms/small.hpp"
#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/round.hpp"
#include "ringlet/collectives/group/or_abort.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

namespace {

void check_axis(const Buffer& part, int axis) {
  if (axis >= 0 && static_cast<std::size_t>(axis) < part.shape.size()) return;
  throw core::ArgumentError("axis is " + std::to_string(axis) + ": the array has axes 0 to " +
                            std::to_string(static_cast<int>(part.shape.size()) - 1) + ".");
}

void check_divides(std::size_t length, int num_ranks, std::string_view what) {
  if (length % static_cast<std::size_t>(num_ranks) == 0) return;
  throw core::ArgumentError("cannot split " + std::to_string(length) + " " + std::string(what) + " into " +
                            std::to_string(num_ranks) + " equal blocks, one for each rank: " + std::to_string(length) +
                            " is not a multiple of " + std::to_string(num_ranks) + ".");
}

void check_rows(std::span<const std::int64_t> rows, const Buffer& part, int num_ranks) {
  const std::int64_t length = part.shape.empty() ? 0 : part.shape[0];
  const bool is_valid = rows.size() == static_cast<std::size_t>(num_ranks) &&
                        std::all_of(rows.begin(), rows.end(), [&](std::int64_t n) { return n >= 0 && n <= length; }) &&
                        std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == length;
  if (is_valid) return;
  std::string text;
  for (const std::int64_t number : rows) text += (text.empty() ? "" : ", ") + std::to_string(number);
  throw core::ArgumentError("counts is [" + text + "]: expected " + std::to_string(num_ranks) +
                            " non-negative numbers, one for each rank, whose sum is " + std::to_string(length) + ".");
}

void check_pairs(std::span<const std::int64_t> pairs, int num_ranks) {
  if (pairs.size() % 2 != 0)
    throw core::ArgumentError("pairs must have an even length: a source and a target for each pair.");
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    std::vector<bool> is_taken(static_cast<std::size_t>(num_ranks));
    for (std::size_t i = side; i < pairs.size(); i += 2) {
      const std::string name = side == 0 ? "source" : "target";
      if (pairs[i] < 0 || pairs[i] >= num_ranks) {
        throw core::ArgumentError("pairs has the " + name + " " + std::to_string(pairs[i]) +
                                  ": the ranks of this group are 0 to " + std::to_string(num_ranks - 1) + ".");
      }
      if (is_taken[static_cast<std::size_t>(pairs[i])]) {
        throw core::ArgumentError("pairs has rank " + std::to_string(pairs[i]) + " as " + name +
                                  " twice: each rank sends at most once and receives at most once.");
      }
      is_taken[static_cast<std::size_t>(pairs[i])] = true;
    }
  }
}

// Allocates the output of a call without one, in memory that other ranks can write to; returns the block, if any.
Results with_output(const Group& group, Buffer& part, std::size_t bytes) {
  if (part.output != nullptr) return {};
  const std::shared_ptr<World>& world = group.world();
  Results result{world == nullptr ? memory::result_pool().allocate(bytes) : world->allocate(bytes)};
  part.output = result.front()->data();
  return result;
}

}  // namespace

RankState& Member::state() const noexcept { return *group_->states_[static_cast<std::size_t>(rank_)]; }

std::uint64_t Member::calls() const noexcept { return state().sequence; }

void Member::begin_series() { state().series = static_cast<std::uint32_t>(state().sequence + 1); }

void Member::end_series() { state().series = 0; }

void Member::set_extra_time(sync::Clock::duration extra_time) { state().extra_time = extra_time; }

void Member::check_root(int root) const {
  if (root >= 0 && root < group_->num_ranks()) return;
  throw core::ArgumentError("rank " + std::to_string(root) + " is not in this group: its ranks are 0 to " +
                            std::to_string(group_->num_ranks() - 1) + ".");
}

const Call& Member::record_of(int rank) const {
  const std::uint64_t sequence = state().sequence;
  if (group_->is_here(rank)) return group_->states_[static_cast<std::size_t>(rank)]->sets[sequence % kSets].call;
  return group_->remote_call(state(), rank, sequence).call;
}

Results Member::reduce(const Buffer& part, core::Op op, int root, sync::Poll* poll, std::string_view name) {
  check_supported(op, part.dtype);
  check_root(root);
  Buffer own = part;
  Results result;
  Round round(*group_, rank_, poll);
  if (rank_ == root) result = with_output(*group_, own, own.count * core::size_of(core::result_dtype(op, own.dtype)));
  Call& call = round.begin(Kind::kReduce);
  call.op = op;
  call.root = root;
  call.name = name;
  call.set_buffers({&own, 1});
  if (call.total_input_bytes() <= small_limit(round.num_ranks()) && fits_slot(call)) {
    small_reduce(round);
  } else {
    direct_reduce(round);
  }
  round.finish();
  return result;
}

Results Member::reduce_scatter(const Buffer& part, core::Op op, sync::Poll* poll) {
  check_supported(op, part.dtype);
  check_divides(part.count, group_->num_ranks(), "elements");
  Buffer own = part;
  const std::size_t count = own.count / static_cast<std::size_t>(group_->num_ranks());
  Results result = with_output(*group_, own, count * core::size_of(core::result_dtype(op, own.dtype)));
  const auto begin = [&](Round& round, bool continues) {
    Call& call = round.begin(Kind::kReduceScatter);
    call.op = op;
    call.continues = continues;
    call.set_buffers({&own, 1});
  };
  bool is_whole = true;
  const bool tells_memory = may_go_in_pieces(*group_, own);
  if (tells_memory) {
    Round round(*group_, rank_, poll);
    begin(round, false);
    is_whole = !learn_private_inputs(round);
    round.finish();
  }
  const std::size_t most =
      is_whole ? own.count : kExchangeBytes / core::size_of(own.dtype) / static_cast<std::size_t>(group_->num_ranks());
  const auto reduce = [&] {
    std::size_t done = 0;
    do {
      Round round(*group_, rank_, poll);
      begin(round, tells_memory);
      if (is_whole) {
        collectives::reduce_scatter(round);
      } else {
        reduce_scatter_piece(round, done, std::min(most, count - done));
      }
      round.finish();
      done += most;
    } while (done < count);
  };
  if (tells_memory) {
    or_abort(*group_, rank_, reduce);
  } else {
    reduce();
  }
  return result;
}

Results Member::exclusive_scan(const Buffer& part, core::Op op, sync::Poll* poll) {
  check_supported(op, part.dtype);
  if (op == core::Op::kMean) {
    throw core::ArgumentError("MEAN is not supported for an exclusive scan: divide the scan of SUM by the rank.");
  }
  Buffer own = part;
  Round round(*group_, rank_, poll);
  Results result = with_output(*group_, own, own.input_bytes());
  Call& call = round.begin(Kind::kExclusiveScan);
  call.op = op;
  call.set_buffers({&own, 1});
  collectives::exclusive_scan(round);
  round.finish();
  return result;
}

Results Member::all_gather(const Buffer& part, int axis, sync::Poll* poll) {
  return gather(Kind::kAllGather, part, 0, axis, poll);
}

Results Member::gather(const Buffer& part, int root, int axis, sync::Poll* poll) {
  check_root(root);
  return gather(Kind::kGather, part, root, axis, poll);
}

Results Member::gather(Kind kind, const Buffer& part, int root, int axis, sync::Poll* poll) {
  check_axis(part, axis);
  const auto begin = [&](Round& round, bool is_ragged) {
    Call& call = round.begin(kind);
    call.root = root;
    call.axis = axis;
    call.is_ragged = call.continues = is_ragged;
    call.set_buffers({&part, 1});
  };
  Results results;
  std::vector<std::int64_t> lengths;
  {
    Round round(*group_, rank_, poll);
    begin(round, false);
    const bool is_done = gather_equal(round, results);
    if (!is_done) lengths = lengths_of(round);
    round.finish();
    if (is_done) return results;
  }
  return or_abort(*group_, rank_, [&] {
    Round round(*group_, rank_, poll);
    begin(round, true);
    results = gather_ragged(round, lengths);
    round.finish();
    return results;
  });
}

Results Member::scatter(const Buffer& part, std::span<const std::int64_t> rows, int root, sync::Poll* poll) {
  check_root(root);
  if (rank_ == root) {
    check_axis(part, 0);
    check_rows(rows, part, group_->num_ranks());
  }
  Round round(*group_, rank_, poll);
  Call& call = round.begin(Kind::kScatter);
  call.root = root;
  call.has_buffers = rank_ == root;
  call.numbers.assign(rows.begin(), rows.end());
  call.set_buffers({&part, 1});
  Results results = collectives::scatter(round);
  round.finish();
  return results;
}

Results Member::broadcast(std::span<const Buffer> buffers, bool has_buffers, int root, sync::Poll* poll) {
  check_root(root);
  if (rank_ == root && !has_buffers) throw core::ArgumentError("the root of a broadcast must pass the arrays to send.");
  Round round(*group_, rank_, poll);
  Call& call = round.begin(Kind::kBroadcast);
  call.root = root;
  call.has_buffers = has_buffers;
  call.set_buffers(buffers);
  Results results = direct_broadcast(round);
  round.finish();
  return results;
}

Results Member::all_to_all(const Buffer& part, std::span<const std::int64_t> rows, bool is_ragged, sync::Poll* poll) {
  check_axis(part, 0);
  rows_received_ = part.shape[0];
  if (!is_ragged) {
    check_divides(static_cast<std::size_t>(part.shape[0]), group_->num_ranks(), "rows");
    return exchange_blocks(part, {}, poll);
  }
  check_rows(rows, part, group_->num_ranks());
  std::vector<std::int64_t> all_rows;
  {
    Round round(*group_, rank_, poll);
    Call& call = round.begin(Kind::kAllToAll);
    call.is_ragged = true;
    call.numbers.assign(rows.begin(), rows.end());
    call.set_buffers({&part, 1});
    all_rows = exchange_rows(round);
    round.finish();
  }
  rows_received_ = 0;
  for (std::size_t i = static_cast<std::size_t>(rank_); i < all_rows.size(); i += rows.size()) {
    rows_received_ += all_rows[i];
  }
  return or_abort(*group_, rank_, [&] { return exchange_blocks(part, all_rows, poll); });
}

Results Member::exchange_blocks(Buffer part, std::span<const std::int64_t> all_rows, sync::Poll* poll) {
  Round round(*group_, rank_, poll);
  Results result = with_output(*group_, part, static_cast<std::size_t>(rows_received_) * row_bytes(part));
  part.output_length = rows_received_;
  Call& call = round.begin(Kind::kAllToAll);
  call.is_ragged = call.continues = !all_rows.empty();
  call.set_buffers({&part, 1});
  collectives::all_to_all(round, all_rows);
  round.finish();
  return result;
}

Results Member::permute(const Buffer& part, std::span<const std::int64_t> pairs, sync::Poll* poll) {
  check_pairs(pairs, group_->num_ranks());
  Buffer own = part;
  Round round(*group_, rank_, poll);
  Results result = with_output(*group_, own, own.input_bytes());
  Call& call = round.begin(Kind::kPermute);
  call.numbers.assign(pairs.begin(), pairs.end());
  call.set_buffers({&own, 1});
  collectives::permute(round);
  round.finish();
  return result;
}

void Member::barrier(std::string_view name, sync::Poll* poll) {
  Round round(*group_, rank_, poll);
  round.begin(Kind::kBarrier).name = name;
  round.arrive();
  round.finish();
}

void Member::depart(std::string_view reason) { group_->depart(rank_, reason); }

void Member::rejoin() { group_->rejoin(rank_); }

}  // namespace ringlet::collectives
