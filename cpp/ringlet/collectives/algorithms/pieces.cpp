#include "ringlet/collectives/algorithms/pieces.hpp"

#include "ringlet/collectives/algorithms/exchange.hpp"
#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/collectives/transport/world.hpp"

namespace ringlet::collectives {

bool tells_memory(const Group& group, std::span<const Buffer> buffers, Algorithm algorithm) {
  if (group.world() == nullptr || buffers.empty() || buffers.front().output == nullptr) return false;
  if (algorithm != Algorithm::kAuto && algorithm != Algorithm::kDirect) return false;
  if (group.world()->can_use_cma() && group.num_ranks() < kFewestForPieces && !exchanges(group)) return false;
  std::size_t bytes = 0;
  for (const Buffer& part : buffers) bytes += part.input_bytes();
  return bytes > (group.world()->can_use_cma() && exchanges(group) ? kLargestCrossed : kLargestWhole);
}

bool learn_memory(Round& round) {
  round.arrive_to_tell();
  check_overlap(round);
  for (std::size_t part = 0; part < round.call().buffers.size(); ++part) {
    if (round.call().buffers[part].count == 0) continue;
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      if (!round.input_name(rank, part).is_shared() || !round.output_name(rank, part).is_shared()) return true;
    }
  }
  return false;
}

}  // namespace ringlet::collectives
