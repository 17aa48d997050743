// Records of calls for the flight recorder.
#include <algorithm>

#include "ringlet/collectives/call/round.hpp"
#include "ringlet/record/recorder.hpp"

namespace ringlet::collectives {

void Round::begin_record(const sync::Slot& slot) noexcept {
  using record::Operation;
  const Call& call = this->call();
  const Buffer* const first = call.has_buffers && !call.buffers.empty() ? call.buffers.data() : nullptr;
  const std::size_t num_dims = first == nullptr ? 0 : first->shape.size();
  const std::uint64_t op = is_reduction(call.kind) ? static_cast<std::uint64_t>(call.op) : record::kNone;
  const std::uint64_t dtype = first != nullptr ? static_cast<std::uint64_t>(first->dtype) : record::kNone;
  const std::uint64_t flags =
      (call.has_buffers ? Operation::kHasBuffers : 0) | (call.continues ? Operation::kContinues : 0);
  const std::uint64_t root = has_root(call.kind) ? static_cast<std::uint64_t>(call.root) : record::kNoPlace;
  const std::uint64_t axis = is_gather(call.kind) ? static_cast<std::uint64_t>(call.axis) : record::kNoPlace;
  Operation operation;
  operation.group = control().identity;
  operation.sequence = sequence_;
  operation.what = static_cast<std::uint64_t>(call.kind) | op << 8 | static_cast<std::uint64_t>(call.algorithm) << 16 |
                   dtype << 24 | std::min<std::uint64_t>(num_dims, 0xFF) << 32 | flags << 40 |
                   std::min<std::uint64_t>(call.buffers.size(), 0xFFFF) << 48;
  operation.where =
      static_cast<std::uint64_t>(rank_) | static_cast<std::uint64_t>(num_ranks()) << 16 | root << 32 | axis << 48;
  operation.bytes = call.total_input_bytes();
  for (std::size_t dim = 0; dim < std::min(num_dims, record::kMostDims); ++dim)
    operation.shape[dim] = first->shape[dim];
  operation.fingerprints = (slot.call_fingerprint & 0xFFFFFFFF) | slot.buffers_fingerprint << 32;
  record_ = record::begin(operation);
}

}  // namespace ringlet::collectives
