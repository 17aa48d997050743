#include "ringlet/collectives/overlap.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::collectives {

namespace {

struct Buffer {
  std::uintptr_t begin;
  std::uintptr_t end;
  int rank;
  std::size_t part;
  bool is_output;
};

Buffer buffer_of(const void* data, std::size_t bytes, int rank, std::size_t part, bool is_output) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + bytes, rank, part, is_output};
}

// noexcept: others may be using this rank's buffers by now. Without memory to look at them it can neither stay nor
// leave.
std::vector<Buffer> buffers_of(Round& round) noexcept {
  std::vector<Buffer> buffers;
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const Call& call = round.call();  // the same on every rank but for the addresses
    for (std::size_t part = 0; part < call.parts.size(); ++part) {
      const std::size_t input_bytes = call.parts[part].input_bytes();
      const std::size_t result_bytes = call.result_bytes(call.parts[part]);
      if (result_bytes == 0) continue;
      const void* const input = round.input_of(rank, part);
      const void* const output = round.output_of(rank, part);
      buffers.push_back(buffer_of(output, result_bytes, rank, part, true));
      const bool is_in_place = input == output && input_bytes == result_bytes;
      if (!is_in_place) buffers.push_back(buffer_of(input, input_bytes, rank, part, false));
    }
  }
  return buffers;
}

std::string name_of(const Buffer& buffer) {
  return (buffer.is_output ? "out of rank " : "the input of rank ") + std::to_string(buffer.rank) + " (array " +
         std::to_string(buffer.part) + ")";
}

}  // namespace

void check_overlap(Round& round) {
  std::vector<Buffer> buffers = buffers_of(round);
  std::sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) { return a.begin < b.begin; });
  // From low to high addresses: the buffers that reach furthest so far, of outputs and of all.
  const Buffer* furthest_output = nullptr;
  const Buffer* furthest = nullptr;
  for (const Buffer& buffer : buffers) {
    const Buffer* const rival = buffer.is_output ? furthest : furthest_output;
    if (rival != nullptr && buffer.begin < rival->end) {
      round.refuse(name_of(*rival) + " and " + name_of(buffer) + " share memory, so one would be written while the " +
                   "other is still needed. Give every rank an out of its own; it may be the rank's own input.");
    }
    if (furthest == nullptr || buffer.end > furthest->end) furthest = &buffer;
    if (buffer.is_output && (furthest_output == nullptr || buffer.end > furthest_output->end)) {
      furthest_output = &buffer;
    }
  }
}

}  // namespace ringlet::collectives
