// Overlap check of the buffers of a call.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The memory that a call reads and writes. Other ranks may already use this rank's buffers, so it cannot leave;
// Round::publish has therefore reserved the storage.
class OverlapCheck {
 public:
  explicit OverlapCheck(Round& round) : round_(round), accesses_(round.mine().accesses) { accesses_.clear(); }

  void add_input(int rank, BufferName place, std::size_t bytes, std::size_t part = 0) {
    add(rank, place, bytes, part, false);
  }
  void add_output(int rank, BufferName place, std::size_t bytes, std::size_t part = 0) {
    add(rank, place, bytes, part, true);
  }
  // Adds an input whose bytes from `offset` on may be the output, because each byte is read before it is written.
  void add_input_around(int rank, BufferName place, std::size_t bytes, BufferName output, std::size_t offset,
                        std::size_t output_bytes);

  // Refuses the call if an output shares a byte with another buffer that is still needed when the output is written.
  // All ranks have the same data, so either all ranks refuse or none does.
  void check();

 private:
  void add(int rank, BufferName place, std::size_t bytes, std::size_t part, bool is_output);
  static bool reaches_further(const Access& access, const Access* other);
  static std::string name_of(const Access& access);

  Round& round_;
  std::vector<Access>& accesses_;
};

// The overlap check of calls in which every output has the size of its input and may be the input itself.
void check_overlap(Round& round);

}  // namespace ringlet::collectives
