#include "ringlet/collectives/algorithms/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "ringlet/collectives/algorithms/direct.hpp"
#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Results are copied on while they are in the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;
// What is read across at once stays in the second-level cache.
constexpr std::size_t kAcrossBytes = std::size_t{128} << 10;
constexpr std::size_t kAlignment = 64;

kernels::Store store_of(const Buffer& part) {
  return part.input_bytes() <= kLargestStreamed ? kernels::Store::kStream : kernels::Store::kPlain;
}

// They may be the same bytes, or have none in common.
bool overlap_in_part(const Buffer& part, std::size_t result_bytes) {
  const auto* const input = static_cast<const std::byte*>(part.input);
  const auto* const output = static_cast<const std::byte*>(part.output);
  if (input == output && part.input_bytes() == result_bytes) return false;
  return input < output + result_bytes && output < input + part.input_bytes();
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
  return call.buffers.size() == 1 && call.has_outputs && call.buffers.front().count > 0 && exchanges(group);
}

bool is_to_be_read_across(const Group& group, const Call& call) {
  return call.total_input_bytes() > kLargestCrossed && group.world()->can_use_cma();
}

void exchange_all_reduce(Round& round, bool across) {
  const auto is_shared = [](BufferName place) { return place.is_shared() && !place.is_staged(); };
  round.mine().chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_exchange(across);
  check_overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (!is_shared(round.input_name(rank, 0)) || !is_shared(round.output_name(rank, 0))) {
      return round.exchange_shares();
    }
  }
  direct_all_reduce_of_arrived(round);
}

// The elements that a rank combines.
Range Round::share_of_result(int rank) {
  const Buffer& part = call().buffers.front();
  const std::size_t unit = kAlignment / std::min(kAlignment, core::size_of(part.dtype));
  const std::size_t units = (part.count + unit - 1) / unit;
  return {std::min(share_begin(units, rank, num_ranks()) * unit, part.count),
          std::min(share_begin(units, rank + 1, num_ranks()) * unit, part.count)};
}

// Before arriving. Staged memory is laid out as the array that it stands for. Results are staged even where the output
// is shared, which its owner may write to as soon as it has left the call.
void Round::stage_shares() {
  if (exchanges_across_) return;
  RankState::Set& set = mine().sets[set_];
  const Buffer& part = set.call.buffers.front();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t result_bytes = set.call.result_bytes(part);
  const auto stage = [&](memory::Block& block, std::size_t bytes) {
    if (block == nullptr || block->size() < bytes) {
      block = nullptr;
      block = group_.world_->allocate(bytes);
    }
    return group_.world_->buffer_name_of(block->data(), interruption_.poll()).as_staged();
  };
  announce_name(stage(set.staged_outputs, result_bytes));
  if (!set.outputs.front().is_shared()) set.outputs.front() = set.result_names.front();
  if (set.inputs.front().is_shared()) return;
  set.inputs.front() = stage(set.staged_inputs, part.input_bytes());
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank == rank_ && !overlap_in_part(part, result_bytes)) continue;
    const Range share = share_of_result(rank);
    collectives::copy(static_cast<const std::byte*>(part.input) + share.begin * element,
                      (share.end - share.begin) * element, set.staged_inputs->data() + share.begin * element,
                      store_of(part));
  }
}

void Round::combine_share() {
  const Call& own = call();
  const Buffer& part = own.buffers.front();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t result_element = core::size_of(own.result_dtype(part));
  const auto lanes = static_cast<std::size_t>(num_ranks());
  const Range share = share_of_result(rank_);
  const bool reads_own = exchanges_across_ || !overlap_in_part(part, own.result_bytes(part));
  const std::size_t block = (exchanges_across_ ? std::min(kAcrossBytes, block_bytes(lanes)) : kBlockBytes) / element;
  std::byte* const staged = exchanges_across_ ? nullptr : mine().sets[set_].staged_outputs->data();
  auto& inputs = mine().inputs;
  for (std::size_t begin = share.begin; begin < share.end; begin += block) {
    const std::size_t count = std::min(block, share.end - begin);
    inputs.clear();
    for (int rank = 0; rank < num_ranks(); ++rank) {
      const bool is_own = rank == rank_ && reads_own;
      inputs.push_back(
          is_own ? static_cast<const std::byte*>(part.input) + begin * element
                 : fetch(input(rank, 0) + begin * element, count * element, static_cast<std::size_t>(rank), lanes));
    }
    std::byte* const to = static_cast<std::byte*>(part.output) + begin * result_element;
    void* const target = to;
    const kernels::Store store = exchanges_across_ ? store_of(part) : kernels::Store::kPlain;
    kernels::active().reduce(own.op, part.dtype, inputs, count, {&target, 1}, store);
    if (staged == nullptr) continue;
    collectives::copy(to, count * result_element, staged + begin * result_element, store_of(part));
  }
}

void Round::take_shares() {
  const Call& own = call();
  const Buffer& part = own.buffers.front();
  const std::size_t result_element = core::size_of(own.result_dtype(part));
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank == rank_) continue;
    const Range share = share_of_result(rank);
    const std::size_t offset = share.begin * result_element;
    const std::size_t bytes = (share.end - share.begin) * result_element;
    std::byte* const to = static_cast<std::byte*>(part.output) + offset;
    const std::byte* const from =
        exchanges_across_ ? output(rank, 0).here : group_.world_->address_of(BufferName(slot_of(rank).result));
    if (from != nullptr) {
      std::memcpy(to, from + offset, bytes);
    } else if (bytes > 0) {
      read_from(output(rank, 0) + offset, bytes, to);
    }
  }
}

void Round::exchange_shares() {
  bool is_cut_off = is_left_behind();
  try {
    if (!is_cut_off) {
      combine_share();
      check_sources();
    }
  } catch (const Unreachable&) {
    is_cut_off = true;
  }
  finish_work(is_cut_off ? 0 : 1, static_cast<std::size_t>(num_ranks()), is_cut_off);
  try {
    take_shares();
    if (exchanges_across_) check_sources();  // else others may have left by now: staged memory stays as it is
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  if (exchanges_across_) wait_for_all_steps();  // outputs are read until all ranks have theirs
  own_board().left_seq.publish(sequence_);
}

}  // namespace ringlet::collectives
