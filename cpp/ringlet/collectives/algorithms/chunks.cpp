#include "ringlet/collectives/algorithms/chunks.hpp"

#include <algorithm>

namespace ringlet::collectives {

namespace {

// Larger chunks leave ranks idle at the end; smaller chunks spend too much time on claims.
constexpr std::size_t kSmallestBytes = std::size_t{8} << 10;
constexpr std::size_t kLargestBytes = std::size_t{128} << 10;
constexpr std::size_t kUnit = 4096;  // chunks of a large array begin at multiples of this size

std::size_t chunk_bytes(std::size_t total, int num_ranks) {
  const std::size_t share = (total + static_cast<std::size_t>(num_ranks) - 1) / static_cast<std::size_t>(num_ranks);
  return std::clamp((share + kUnit - 1) / kUnit * kUnit, kSmallestBytes, kLargestBytes);
}

}  // namespace

void Chunks::plan(const Call& call, int num_ranks) {
  const std::size_t limit = chunk_bytes(call.total_input_bytes(), num_ranks);
  runs_.clear();
  starts_.assign(1, 0);
  std::size_t filled = 0;
  for (std::size_t part = 0; part < call.buffers.size(); ++part) {
    const std::size_t element = core::size_of(call.buffers[part].dtype);
    for (std::size_t begin = 0; begin < call.buffers[part].count;) {
      const std::size_t count = std::min((limit - filled) / element, call.buffers[part].count - begin);
      if (count > 0) runs_.push_back({part, begin, count});
      begin += count;
      filled += count * element;
      if (count == 0 || filled >= limit) {
        starts_.push_back(runs_.size());
        filled = 0;
      }
    }
  }
  if (starts_.back() != runs_.size()) starts_.push_back(runs_.size());
}

Ranges::Ranges(std::size_t total, std::size_t bytes_per_unit, int num_ranks)
    : total_(total), step_(std::max<std::size_t>(1, chunk_bytes(total * bytes_per_unit, num_ranks) / bytes_per_unit)) {}

}  // namespace ringlet::collectives
