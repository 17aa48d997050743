#include "ringlet/collectives/overlap.hpp"

#include <algorithm>
#include <string>

namespace ringlet::collectives {

void Buffers::add(int rank, const void* data, std::size_t bytes, std::size_t part, bool is_output) noexcept {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  buffers_.push_back({begin, begin + bytes, rank, part, is_output});
}

void Buffers::add_input_around(int rank, const void* data, std::size_t bytes, const void* output, std::size_t offset,
                               std::size_t output_bytes) noexcept {
  const auto* const first = static_cast<const std::byte*>(data);
  if (output != first + offset) return add_input(rank, data, bytes);
  add_input(rank, first, offset);
  add_input(rank, first + offset + output_bytes, bytes - offset - output_bytes);
}

std::string Buffers::name_of(const Buffer& buffer) {
  return (buffer.is_output ? "out of rank " : "the input of rank ") + std::to_string(buffer.rank) + " (array " +
         std::to_string(buffer.part) + ")";
}

void Buffers::check(Round& round) {
  std::sort(buffers_.begin(), buffers_.end(), [](const Buffer& a, const Buffer& b) { return a.begin < b.begin; });
  // From low to high addresses: the buffers that reach furthest so far, of outputs and of all.
  const Buffer* furthest_output = nullptr;
  const Buffer* furthest = nullptr;
  for (const Buffer& buffer : buffers_) {
    const Buffer* const rival = buffer.is_output ? furthest : furthest_output;
    if (rival != nullptr && buffer.begin < rival->end) {
      round.refuse(name_of(*rival) + " and " + name_of(buffer) + " share memory, so one would be written while the " +
                   "other is still needed. Give every rank an out of its own.");
    }
    if (furthest == nullptr || buffer.end > furthest->end) furthest = &buffer;
    if (buffer.is_output && (furthest_output == nullptr || buffer.end > furthest_output->end)) {
      furthest_output = &buffer;
    }
  }
}

void check_overlap(Round& round) {
  Buffers buffers;
  const Call& call = round.call();  // the same on every rank but for the addresses
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const bool has_output = call.kind != Kind::kReduce || rank == call.root;
    for (std::size_t part = 0; part < call.parts.size(); ++part) {
      const std::size_t input_bytes = call.parts[part].input_bytes();
      const std::size_t result_bytes = call.result_bytes(call.parts[part]);
      const void* const input = round.input_of(rank, part);
      const void* const output = has_output ? round.output_of(rank, part) : nullptr;
      if (has_output) buffers.add_output(rank, output, result_bytes, part);
      const bool is_in_place = input == output && input_bytes == result_bytes;
      if (!is_in_place) buffers.add_input(rank, input, input_bytes, part);
    }
  }
  buffers.check(round);
}

}  // namespace ringlet::collectives
