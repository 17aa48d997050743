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

// Size of a block of results, which is copied while it is in the L1 cache.
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;
// Size of one read across processes, which fits the L2 cache.
constexpr std::size_t kAcrossBytes = std::size_t{128} << 10;
constexpr std::size_t kAlignment = 64;

// Whether input and output overlap without being the same bytes.
bool overlap_in_part(const Buffer& part, std::size_t result_bytes) {
  const auto* const input = static_cast<const std::byte*>(part.input);
  const auto* const output = static_cast<const std::byte*>(part.output);
  if (input == output && part.input_bytes() == result_bytes) return false;
  return input < output + result_bytes && output < input + part.input_bytes();
}

// The exchange of one array, for one rank. If across, others read its private buffers; else shared memory replaces
// them.
class Exchange {
 public:
  Exchange(Round& round, bool across)
      : round_(round),
        set_(round.set_of(round.rank())),
        call_(round.call()),
        part_(call_.buffers.front()),
        across_(across),
        element_bytes_(core::size_of(part_.dtype)),
        result_bytes_(core::size_of(call_.result_dtype(part_))),
        reads_own_input_(across || !overlap_in_part(part_, call_.result_bytes(part_))) {
    const std::size_t bytes = part_.input_bytes();
    if (across || bytes > kLargestStreamed) return;
    is_tuned_ = bytes > kLargestAlwaysStreamed;
    store_ = is_tuned_ ? kernels::Store(round.mine().store_tuner.next(bytes)) : kernels::Store::kStream;
  }

  // Called before arriving. Staged memory has the layout of the array that it replaces. Results are staged even if the
  // output is shared, because the owner may write to it as soon as it has left the call.
  void stage() {
    if (across_) return;
    const sync::Clock::time_point start = sync::Clock::now();
    round_.announce_name(round_.stage(set_.staged_outputs, call_.result_bytes(part_)));
    if (!set_.outputs.front().is_shared()) set_.outputs.front() = set_.result_names.front();
    if (set_.inputs.front().is_shared()) return;
    set_.inputs.front() = round_.stage(set_.staged_inputs, part_.input_bytes());
    for (int rank = 0; rank < round_.num_ranks(); ++rank) {
      if (rank == round_.rank() && reads_own_input_) continue;
      const Range share = share_of(rank);
      const std::size_t offset = share.begin * element_bytes_;
      copy(at(part_.input, offset), (share.end - share.begin) * element_bytes_, set_.staged_inputs->data() + offset,
           store_);
    }
    staging_ = sync::Clock::now() - start;
  }

  void run() {
    const sync::Clock::time_point start = sync::Clock::now();
    round_.process_shares(across_, [this] { combine(); }, [this] { take(); });
    if (!is_tuned_) return;
    round_.mine().store_tuner.add(part_.input_bytes(), staging_ + (sync::Clock::now() - start));
  }

 private:
  // The elements that a rank combines.
  Range share_of(int rank) const {
    const std::size_t unit = kAlignment / std::min(kAlignment, element_bytes_);
    const std::size_t units = (part_.count + unit - 1) / unit;
    return {std::min(share_begin(units, rank, round_.num_ranks()) * unit, part_.count),
            std::min(share_begin(units, rank + 1, round_.num_ranks()) * unit, part_.count)};
  }

  void combine() {
    const auto lanes = static_cast<std::size_t>(round_.num_ranks());
    const Range share = share_of(round_.rank());
    const std::size_t block =
        (across_ ? std::min(kAcrossBytes, round_.block_bytes(lanes)) : kBlockBytes) / element_bytes_;
    std::byte* const staged = across_ ? nullptr : set_.staged_outputs->data();
    auto& inputs = round_.mine().inputs;
    for (std::size_t begin = share.begin; begin < share.end; begin += block) {
      const std::size_t count = std::min(block, share.end - begin);
      const std::size_t offset = begin * element_bytes_;
      inputs.clear();
      for (int rank = 0; rank < round_.num_ranks(); ++rank) {
        const bool is_own = rank == round_.rank() && reads_own_input_;
        inputs.push_back(is_own ? at(part_.input, offset)
                                : round_.fetch(round_.input(rank, 0) + offset, count * element_bytes_,
                                               static_cast<std::size_t>(rank), lanes));
      }
      void* const target = at(part_.output, begin * result_bytes_);
      kernels::active().reduce(call_.op, part_.dtype, inputs, count, {&target, 1}, kernels::Store::kPlain);
      if (staged != nullptr) copy(target, count * result_bytes_, staged + begin * result_bytes_, store_);
    }
  }

  void take() {
    for (int rank = 0; rank < round_.num_ranks(); ++rank) {
      if (rank == round_.rank()) continue;
      const Range share = share_of(rank);
      const std::size_t offset = share.begin * result_bytes_;
      const std::size_t bytes = (share.end - share.begin) * result_bytes_;
      MappedBuffer from = round_.output(rank, 0);
      if (!across_) from.here = round_.announced_by(rank);
      round_.read(from + offset, bytes, at(part_.output, offset));
    }
  }

  Round& round_;
  RankState::Set& set_;
  const Call& call_;
  const Buffer& part_;
  bool across_;
  std::size_t element_bytes_;
  std::size_t result_bytes_;
  bool reads_own_input_;
  kernels::Store store_ = kernels::Store::kPlain;  // for shared memory
  bool is_tuned_ = false;                          // whether the tuner has chosen it
  sync::Clock::duration staging_{};
};

}  // namespace

bool have_own_processes(const Group& group) {
  if (group.world() == nullptr) return false;
  for (int rank = 1; rank < group.num_ranks(); ++rank) {
    if (group.process_of(rank) == group.process_of(rank - 1)) return false;
  }
  return group.num_ranks() > 1;
}

bool exchanges(const Group& group) { return group.num_ranks() < kFewestForPieces && have_own_processes(group); }

bool is_to_be_exchanged(const Group& group, const Call& call) {
  return call.buffers.size() == 1 && call.has_outputs && call.buffers.front().count > 0 &&
         call.algorithm != Algorithm::kRing && exchanges(group);
}

bool is_to_be_read_across(const Group& group, const Call& call) {
  return call.total_input_bytes() > kLargestCrossed && group.world()->can_use_cma();
}

void exchange_all_reduce(Round& round, bool across) {
  const auto is_shared = [](BufferName place) { return place.is_shared() && !place.is_staged(); };
  Exchange exchange(round, across);
  round.mine().chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_work([&] { exchange.stage(); });
  check_overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (!is_shared(round.input_name(rank, 0)) || !is_shared(round.output_name(rank, 0))) return exchange.run();
  }
  direct_all_reduce_of_arrived(round);
}

}  // namespace ringlet::collectives
