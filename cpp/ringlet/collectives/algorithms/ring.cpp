#include "ringlet/collectives/algorithms/ring.hpp"

#include <algorithm>
#include <cstring>

#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// One buffer passed around the ring, for one rank.
class RingPart {
 public:
  RingPart(Round& round, std::size_t index)
      : round_(round),
        call_(round.call()),
        part_(call_.buffers[index]),
        index_(index),
        num_ranks_(static_cast<std::size_t>(round.num_ranks())),
        rank_(static_cast<std::size_t>(round.rank())),
        partial_dtype_(core::partial_dtype(part_.dtype)),
        element_bytes_(core::size_of(part_.dtype)),
        partial_bytes_(core::size_of(partial_dtype_)),
        result_bytes_(core::size_of(call_.result_dtype(part_))) {}

  void run() {
    const std::size_t segment = num_ranks_ * (kRingPieceBytes / element_bytes_);
    for (segment_begin_ = 0; segment_begin_ < part_.count; segment_begin_ += segment) {
      segment_size_ = std::min(segment, part_.count - segment_begin_);
      first_step_ = round_.mine().ring_steps;
      reduce_scatter();
      if (call_.has_outputs) all_gather();
    }
  }

 private:
  struct Piece {
    std::size_t begin;
    std::size_t size;
  };

  // The piece that starts `index` ranks to the left of this rank.
  Piece piece_left_by(std::size_t index) const {
    const std::size_t number = (rank_ + num_ranks_ - index % num_ranks_) % num_ranks_;
    const std::size_t begin = number * segment_size_ / num_ranks_;
    return {segment_begin_ + begin, (number + 1) * segment_size_ / num_ranks_ - begin};
  }
  int left_neighbour() const { return static_cast<int>((rank_ + num_ranks_ - 1) % num_ranks_); }

  // Memory of partial results: the results themselves, or scratch if results have another type.
  std::byte* partial_of(int rank) const {
    if (call_.result_dtype(part_) != partial_dtype_) return round_.result_of(0, call_.buffers.size() + index_);
    return result_of(rank);
  }
  std::byte* result_of(int rank) const {
    if (!call_.has_outputs) return round_.result_of(0, index_);
    return round_.output(rank, index_).here;
  }

  void begin_step(std::size_t step) const { round_.wait_for_steps(left_neighbour(), first_step_ + step); }

  void reduce_scatter() {  // after step s, the piece has the combination of s + 1 ranks
    const kernels::Kernels& kernels = kernels::active();
    for (std::size_t step = 0; step < num_ranks_; ++step) {
      const Piece piece = piece_left_by(step);
      const void* const mine = round_.input(round_.rank(), index_).here + piece.begin * element_bytes_;
      std::byte* const partial = partial_of(round_.rank()) + piece.begin * partial_bytes_;
      if (step == 0) {
        kernels.widen(part_.dtype, mine, piece.size, partial);
      } else {
        begin_step(step);
        const std::byte* const so_far = partial_of(left_neighbour()) + piece.begin * partial_bytes_;
        kernels.combine(call_.op, part_.dtype, so_far, mine, piece.size, partial);
      }
      if (step + 1 == num_ranks_) {
        std::byte* const result = result_of(round_.rank()) + piece.begin * result_bytes_;
        kernels.finish(call_.op, part_.dtype, partial, piece.size, num_ranks_, result);
      }
      round_.finish_step();
    }
  }

  // No rank overwrites a piece that its right neighbour still reads: starting step k needs k steps done on the left,
  // hence k - P + 2 on the right, and the piece written in step k was last read on the right in step k - P + 1.
  void all_gather() {
    for (std::size_t step = 1; step < num_ranks_; ++step) {
      const Piece piece = piece_left_by(num_ranks_ + step - 1);  // finished by the rank `step` places to the left
      const std::size_t offset = piece.begin * result_bytes_;
      begin_step(num_ranks_ + step - 1);
      if (piece.size > 0) {
        std::memcpy(result_of(round_.rank()) + offset, result_of(left_neighbour()) + offset,
                    piece.size * result_bytes_);
      }
      round_.finish_step();
    }
  }

  Round& round_;
  const Call& call_;
  const Buffer& part_;
  std::size_t index_;
  std::size_t num_ranks_;
  std::size_t rank_;
  core::DType partial_dtype_;
  std::size_t element_bytes_;
  std::size_t partial_bytes_;
  std::size_t result_bytes_;
  std::size_t segment_begin_ = 0;
  std::size_t segment_size_ = 0;
  std::uint64_t first_step_ = 0;
};

}  // namespace

Results ring_all_reduce(Round& round) {
  const Call& call = round.call();
  const bool is_shared = !call.has_outputs;
  if (round.rank() == 0) round.announce_results(true);
  round.arrive_for_work();
  if (!is_shared) check_overlap(round);
  for (std::size_t index = 0; index < call.buffers.size(); ++index) RingPart(round, index).run();
  // A neighbour may still read this rank's buffers; waiting for the next arrival would be too late.
  for (int rank = 0; rank < round.num_ranks(); ++rank) round.wait_for_steps(rank, round.mine().ring_steps);
  if (round.is_between_processes()) round.leave_work();
  Results results = round.take_results(0);
  return is_shared ? std::move(results) : Results{};
}

}  // namespace ringlet::collectives
