#include "ringlet/collectives/algorithms/small.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Every buffer starts at an offset aligned for any element type.
constexpr std::size_t kPartAlignment = 16;

std::size_t padded(std::size_t bytes) { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

// Whether buffers of different ranks are disjoint.
bool is_apart(BufferName one, BufferName other, std::size_t bytes, bool are_of_one_process) {
  if (!are_of_one_process && !one.is_shared() && !other.is_shared()) return true;
  return (one.bits() < other.bits() ? other.bits() - one.bits() : one.bits() - other.bits()) >= bytes;
}

// The common case, one array on few ranks, needs only the slots, whose lines are already in the cache.
void check_outputs(Round& round) {
  constexpr int kFewRanks = 16;
  const Call& call = round.call();
  if (call.buffers.size() > 1 || round.num_ranks() > kFewRanks) return check_overlap(round);
  const std::size_t bytes = std::max(call.result_bytes(call.buffers.front()), call.buffers.front().input_bytes());
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const BufferName output(round.slot_of(rank).output);
    for (int other = 0; other < round.num_ranks(); ++other) {
      if (other == rank) continue;
      const bool are_of_one = round.process_of(rank) == round.process_of(other);
      const bool are_apart = is_apart(output, BufferName(round.slot_of(other).output), bytes, are_of_one) &&
                             is_apart(output, BufferName(round.slot_of(other).input), bytes, are_of_one);
      if (!are_apart) return check_overlap(round);  // the complete check
    }
  }
}

// Points the rank's input list at the payloads of all ranks, from `offset` on.
std::span<const void* const> payloads(Round& round, std::size_t offset) {
  auto& inputs = round.mine().inputs;
  inputs.resize(static_cast<std::size_t>(round.num_ranks()));
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    inputs[static_cast<std::size_t>(rank)] = round.payload_of(rank, offset);
  }
  return inputs;
}

// Combines `count` elements that all ranks sent at `offset`.
void reduce_payloads(Round& round, const Buffer& part, std::size_t offset, std::size_t count, void* output) {
  if (count == 0) return;
  const auto inputs = payloads(round, offset);
  kernels::active().reduce(round.call().op, part.dtype, inputs, count, {&output, 1}, kernels::Store::kPlain);
}

}  // namespace

bool fits_slot(const Call& call) {
  std::size_t bytes = 0;
  for (const Buffer& part : call.buffers) {
    if (part.input_bytes() > sync::kSlotPayloadBytes) return false;
    bytes += padded(part.input_bytes());
    if (bytes > sync::kSlotPayloadBytes) return false;
  }
  return true;
}

void send_payload(Round& round) {
  std::byte* to = round.slot_of(round.rank()).payload();
  for (const Buffer& part : round.call().buffers) {
    if (part.count > 0) std::memcpy(to, part.input, part.input_bytes());
    to += padded(part.input_bytes());
  }
}

Results small_all_reduce(Round& round) {
  const Call& call = round.call();
  send_payload(round);
  Results results;
  if (!call.has_outputs) {
    for (const Buffer& part : call.buffers) results.push_back(memory::result_pool().allocate(call.result_bytes(part)));
  }
  round.arrive();
  if (call.has_outputs && !call.buffers.empty()) check_outputs(round);
  std::size_t offset = 0;
  for (std::size_t index = 0; index < call.buffers.size(); ++index) {
    const Buffer& part = call.buffers[index];
    reduce_payloads(round, part, offset, part.count, call.has_outputs ? part.output : results[index]->data());
    offset += padded(part.input_bytes());
  }
  return results;
}

void small_reduce(Round& round) {
  send_payload(round);
  round.arrive();
  const Buffer& part = round.call().buffers.front();
  if (round.rank() == round.call().root) reduce_payloads(round, part, 0, part.count, part.output);
}

void small_reduce_scatter(Round& round) {
  const Buffer& part = round.call().buffers.front();
  const std::size_t count = part.count / static_cast<std::size_t>(round.num_ranks());
  const std::size_t offset = static_cast<std::size_t>(round.rank()) * count * core::size_of(part.dtype);
  reduce_payloads(round, part, offset, count, part.output);
}

}  // namespace ringlet::collectives
