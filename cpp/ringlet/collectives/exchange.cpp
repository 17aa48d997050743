#include "ringlet/collectives/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "ringlet/collectives/bytes.hpp"
#include "ringlet/collectives/direct.hpp"
#include "ringlet/collectives/overlap.hpp"
#include "ringlet/collectives/tuning.hpp"
#include "ringlet/collectives/world.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Results are copied on while they are in the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;
constexpr std::size_t kAlignment = 64;

kernels::Store store_of(const Part& part) {
  return part.input_bytes() <= kLargestStreamed ? kernels::Store::kStream : kernels::Store::kPlain;
}

// One may be the other, but begin nowhere inside it.
bool is_shifted(const Part& part, std::size_t result_bytes) {
  const auto* const input = static_cast<const std::byte*>(part.input);
  const auto* const output = static_cast<const std::byte*>(part.output);
  return input != output && input < output + result_bytes && output < input + part.input_bytes();
}

}  // namespace

bool exchanges(const Group& group) {
  if (group.world() == nullptr || group.num_ranks() >= kFewestForPieces) return false;
  for (int rank = 1; rank < group.num_ranks(); ++rank) {
    if (group.process_of(rank) == group.process_of(rank - 1)) return false;
  }
  return group.num_ranks() > 1;
}

bool is_to_be_exchanged(const Group& group, const Call& call) {
  if (call.parts.size() != 1 || !call.has_outputs || call.parts.front().count == 0 || !exchanges(group)) return false;
  return call.total_input_bytes() <= largest_staged(group.num_ranks()) || !group.world()->can_cross();
}

void exchange_all_reduce(Round& round) {
  round.arrive_for_exchange();
  check_overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (round.input_place(rank, 0).is_staged() || round.output_place(rank, 0).is_staged()) {
      return round.exchange_shares();
    }
  }
  direct_all_reduce_of_arrived(round);
}

// The elements that a rank combines.
Range Round::share_of_result(int rank) {
  const Part& part = call().parts.front();
  const std::size_t unit = kAlignment / std::min(kAlignment, core::size_of(part.dtype));
  const std::size_t units = (part.count + unit - 1) / unit;
  return {std::min(share_begin(units, rank, num_ranks()) * unit, part.count),
          std::min(share_begin(units, rank + 1, num_ranks()) * unit, part.count)};
}

// Before arriving. Staged memory is laid out as the array that it stands for. Results are staged even where the output
// is shared, which its owner may write to as soon as it has left the call.
void Round::stage_shares() {
  RankNotes::Set& set = mine().sets[set_];
  const Part& part = set.call.parts.front();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t result_bytes = set.call.result_bytes(part);
  const auto stage = [&](memory::Block& block, std::size_t bytes) {
    if (block == nullptr || block->size() < bytes) {
      block = nullptr;
      block = group_.world_->allocate(bytes);
    }
    return group_.world_->place_of(block->data(), interruption_.poll()).as_staged();
  };
  announce_place(stage(set.staged_outputs, result_bytes));
  if (!set.outputs.front().is_shared()) set.outputs.front() = set.result_places.front();
  if (set.inputs.front().is_shared()) return;
  set.inputs.front() = stage(set.staged_inputs, part.input_bytes());
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank == rank_ && !is_shifted(part, result_bytes)) continue;
    const Range share = share_of_result(rank);
    collectives::copy(static_cast<const std::byte*>(part.input) + share.begin * element,
                      (share.end - share.begin) * element, set.staged_inputs->data() + share.begin * element,
                      store_of(part));
  }
}

void Round::combine_share() {
  const Call& own = call();
  const Part& part = own.parts.front();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t result_element = core::size_of(own.result_dtype(part));
  const Range share = share_of_result(rank_);
  const bool reads_own = !is_shifted(part, own.result_bytes(part));
  std::byte* const staged = mine().sets[set_].staged_outputs->data();
  auto& inputs = mine().inputs;
  for (std::size_t begin = share.begin; begin < share.end; begin += kBlockBytes / element) {
    const std::size_t count = std::min(kBlockBytes / element, share.end - begin);
    inputs.clear();
    for (int rank = 0; rank < num_ranks(); ++rank) {
      const auto* const from =
          rank == rank_ && reads_own ? static_cast<const std::byte*>(part.input) : input(rank, 0).here;
      inputs.push_back(from + begin * element);
    }
    std::byte* const to = static_cast<std::byte*>(part.output) + begin * result_element;
    void* const target = to;
    kernels::active().reduce(own.op, part.dtype, inputs, count, {&target, 1}, kernels::Store::kPlain);
    collectives::copy(to, count * result_element, staged + begin * result_element, store_of(part));
  }
}

void Round::take_shares() {
  const Call& own = call();
  const Part& part = own.parts.front();
  const std::size_t result_element = core::size_of(own.result_dtype(part));
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank == rank_) continue;
    const Range share = share_of_result(rank);
    const std::byte* const staged = group_.world_->address_of(Place(slot_of(rank).result));
    std::memcpy(static_cast<std::byte*>(part.output) + share.begin * result_element,
                staged + share.begin * result_element, (share.end - share.begin) * result_element);
  }
}

void Round::exchange_shares() {
  const bool is_cut_off = is_left_behind();
  if (!is_cut_off) combine_share();
  finish_work(is_cut_off ? 0 : 1, static_cast<std::size_t>(num_ranks()), is_cut_off);
  take_shares();
  own_board().left.publish(sequence_);
}

}  // namespace ringlet::collectives
