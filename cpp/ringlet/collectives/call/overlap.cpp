#include "ringlet/collectives/call/overlap.hpp"

#include <algorithm>
#include <string>

namespace ringlet::collectives {

void OverlapCheck::add(int rank, BufferName place, std::size_t bytes, std::size_t part, bool is_output) {
  if (bytes == 0 || place.is_null()) return;
  constexpr int kShared = -1;
  const int space = place.is_shared() ? kShared : round_.process_of(rank);
  accesses_.push_back({place.bits(), place.bits() + bytes, space, rank, part, is_output});
}

void OverlapCheck::add_input_around(int rank, BufferName place, std::size_t bytes, BufferName output,
                                    std::size_t offset, std::size_t output_bytes) {
  if (output != place + offset) return add_input(rank, place, bytes);
  add_input(rank, place, offset);
  add_input(rank, place + offset + output_bytes, bytes - offset - output_bytes);
}

std::string OverlapCheck::name_of(const Access& access) {
  return (access.is_output ? "out of rank " : "the input of rank ") + std::to_string(access.rank) + " (array " +
         std::to_string(access.part) + ")";
}

bool OverlapCheck::reaches_further(const Access& access, const Access* other) {
  return other == nullptr || access.space != other->space || access.end > other->end;
}

void OverlapCheck::check() {
  std::sort(accesses_.begin(), accesses_.end(), [](const Access& a, const Access& b) {
    return a.space != b.space ? a.space < b.space : a.begin < b.begin;
  });
  // In order of addresses: the buffer with the highest end so far, among outputs and among all buffers.
  const Access* furthest_output = nullptr;
  const Access* furthest = nullptr;
  for (const Access& access : accesses_) {
    const Access* const rival = access.is_output ? furthest : furthest_output;
    if (rival != nullptr && access.space == rival->space && access.begin < rival->end) {
      round_.refuse(name_of(*rival) + " and " + name_of(access) + " share memory, so one would be written while the " +
                    "other is still read. Pass a different out on each rank.");
    }
    if (reaches_further(access, furthest)) furthest = &access;
    if (access.is_output && reaches_further(access, furthest_output)) furthest_output = &access;
  }
}

void check_overlap(Round& round) {
  OverlapCheck overlap(round);
  const Call& call = round.call();  // the same on every rank except for the addresses
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const bool has_output = call.kind != Kind::kReduce || rank == call.root;
    for (std::size_t part = 0; part < call.buffers.size(); ++part) {
      const std::size_t input_bytes = call.buffers[part].input_bytes();
      const std::size_t result_bytes = call.result_bytes(call.buffers[part]);
      const BufferName input = round.own_input_name(rank, part);
      const BufferName output = has_output ? round.own_output_name(rank, part) : BufferName();
      if (has_output) overlap.add_output(rank, output, result_bytes, part);
      const bool is_in_place = input == output && input_bytes == result_bytes;
      if (!is_in_place) overlap.add_input(rank, input, input_bytes, part);
    }
  }
  overlap.check();
}

}  // namespace ringlet::collectives
