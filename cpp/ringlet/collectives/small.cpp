#include "ringlet/collectives/small.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ringlet/collectives/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Every part begins where an element of any type may begin.
constexpr std::size_t kPartAlignment = 16;

std::size_t padded(std::size_t bytes) { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

std::size_t distance(const void* one, const void* other) {
  const auto first = reinterpret_cast<std::uintptr_t>(one);
  const auto second = reinterpret_cast<std::uintptr_t>(other);
  return first < second ? second - first : first - second;
}

// The common case, one array on few ranks, is told by the slots alone, whose lines are here already.
void check_outputs(Round& round) {
  constexpr int kFewRanks = 16;
  const Call& call = round.call();
  if (call.parts.size() > 1 || round.num_ranks() > kFewRanks) return check_overlap(round);
  const std::size_t bytes = std::max(call.result_bytes(call.parts.front()), call.parts.front().input_bytes());
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const void* const output = round.slot_of(rank).output;
    for (int other = 0; other < round.num_ranks(); ++other) {
      if (other == rank) continue;
      const bool is_apart = distance(output, round.slot_of(other).output) >= bytes &&
                            distance(output, round.slot_of(other).input) >= bytes;
      if (!is_apart) return check_overlap(round);  // looks closely
    }
  }
}

}  // namespace

bool fits_slot(const Call& call) {
  std::size_t bytes = 0;
  for (const Part& part : call.parts) {
    if (part.input_bytes() > sync::kSlotPayloadBytes) return false;
    bytes += padded(part.input_bytes());
    if (bytes > sync::kSlotPayloadBytes) return false;
  }
  return true;
}

Results small_all_reduce(Round& round) {
  const Call& call = round.call();
  std::byte* const payload = round.slot_of(round.rank()).payload();
  Results results;
  std::size_t offset = 0;
  for (const Part& part : call.parts) {
    if (part.count > 0) std::memcpy(payload + offset, part.input, part.input_bytes());
    offset += padded(part.input_bytes());
    if (!call.has_outputs) results.push_back(memory::result_pool().allocate(call.result_bytes(part)));
  }
  round.arrive();
  if (call.has_outputs && !call.parts.empty()) check_outputs(round);
  auto& inputs = round.mine().inputs;
  inputs.resize(static_cast<std::size_t>(round.num_ranks()));
  offset = 0;
  for (std::size_t index = 0; index < call.parts.size(); ++index) {
    const Part& part = call.parts[index];
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      inputs[static_cast<std::size_t>(rank)] = round.slot_of(rank).payload() + offset;
    }
    void* const output = call.has_outputs ? part.output : results[index]->data();
    const auto op = static_cast<std::size_t>(call.op);
    const auto dtype = static_cast<std::size_t>(part.dtype);
    if (part.count > 0) {
      kernels::active().reduce[op][dtype](inputs, part.count, {&output, 1}, kernels::Store::kPlain);
    }
    offset += padded(part.input_bytes());
  }
  return results;
}

}  // namespace ringlet::collectives
