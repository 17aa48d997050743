#include "ringlet/collectives/call/bytes.hpp"

#include <string>

namespace ringlet::collectives {

std::size_t row_bytes(const Buffer& part) {
  std::size_t bytes = core::size_of(part.dtype);
  for (std::size_t dim = 1; dim < part.shape.size(); ++dim) bytes *= static_cast<std::size_t>(part.shape[dim]);
  return bytes;
}

void check_output_length(Round& round, int rank, std::int64_t given, std::int64_t wanted, std::string_view what) {
  if (given == wanted) return;
  round.refuse("out of rank " + std::to_string(rank) + " has length " + std::to_string(given) + " along " +
               std::string(what) + ": the result has " + std::to_string(wanted) + ". Pass an out of that length.");
}

}  // namespace ringlet::collectives
