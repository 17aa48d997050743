#include "ringlet/collectives/call/overlap.hpp"

#include <algorithm>
#include <string>

namespace ringlet::collectives {

void Buffers::add(int rank, Place place, std::size_t bytes, std::size_t part, bool is_output) noexcept {
  if (bytes == 0 || place.is_null()) return;
  constexpr int kShared = -1;
  const int space = place.is_shared() ? kShared : round_.process_of(rank);
  buffers_.push_back({space, place.bits(), place.bits() + bytes, rank, part, is_output});
}

void Buffers::add_input_around(int rank, Place place, std::size_t bytes, Place output, std::size_t offset,
                               std::size_t output_bytes) noexcept {
  if (output != place + offset) return add_input(rank, place, bytes);
  add_input(rank, place, offset);
  add_input(rank, place + offset + output_bytes, bytes - offset - output_bytes);
}

std::string Buffers::name_of(const Buffer& buffer) {
  return (buffer.is_output ? "out of rank " : "the input of rank ") + std::to_string(buffer.rank) + " (array " +
         std::to_string(buffer.part) + ")";
}

bool Buffers::reaches_further(const Buffer& buffer, const Buffer* other) {
  return other == nullptr || buffer.space != other->space || buffer.end > other->end;
}

void Buffers::check() {
  std::sort(buffers_.begin(), buffers_.end(), [](const Buffer& a, const Buffer& b) {
    return a.space != b.space ? a.space < b.space : a.begin < b.begin;
  });
  // From low to high addresses: the buffers that reach furthest so far, of outputs and of all.
  const Buffer* furthest_output = nullptr;
  const Buffer* furthest = nullptr;
  for (const Buffer& buffer : buffers_) {
    const Buffer* const rival = buffer.is_output ? furthest : furthest_output;
    if (rival != nullptr && buffer.space == rival->space && buffer.begin < rival->end) {
      round_.refuse(name_of(*rival) + " and " + name_of(buffer) + " share memory, so one would be written while the " +
                    "other is still needed. Give every rank an out of its own.");
    }
    if (reaches_further(buffer, furthest)) furthest = &buffer;
    if (buffer.is_output && reaches_further(buffer, furthest_output)) furthest_output = &buffer;
  }
}

void check_overlap(Round& round) {
  Buffers buffers(round);
  const Call& call = round.call();  // the same on every rank but for the addresses
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const bool has_output = call.kind != Kind::kReduce || rank == call.root;
    for (std::size_t part = 0; part < call.parts.size(); ++part) {
      const std::size_t input_bytes = call.parts[part].input_bytes();
      const std::size_t result_bytes = call.result_bytes(call.parts[part]);
      const Place input = round.own_input_place(rank, part);
      const Place output = has_output ? round.own_output_place(rank, part) : Place();
      if (has_output) buffers.add_output(rank, output, result_bytes, part);
      const bool is_in_place = input == output && input_bytes == result_bytes;
      if (!is_in_place) buffers.add_input(rank, input, input_bytes, part);
    }
  }
  buffers.check();
}

}  // namespace ringlet::collectives
