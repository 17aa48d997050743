// Overlap check of the buffers of a call.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The memory that a call reads and writes. Other ranks may be using this rank's buffers by now, so that it cannot
// leave: Round::publish has reserved the storage.
class OverlapCheck {
 public:
  explicit OverlapCheck(Round& round) : round_(round), accesses_(round.mine().accesses) { accesses_.clear(); }

  void add_input(int rank, BufferName place, std::size_t bytes, std::size_t part = 0) {
    add(rank, place, bytes, part, false);
  }
  void add_output(int rank, BufferName place, std::size_t bytes, std::size_t part = 0) {
    add(rank, place, bytes, part, true);
  }
  // An input of which the bytes from `offset` on may be the output, because each is read before it is written.
  void add_input_around(int rank, BufferName place, std::size_t bytes, BufferName output, std::size_t offset,
                        std::size_t output_bytes);

  // Refuses the call if an output shares a byte with anything else: it would be written while that is still needed.
  // All ranks see the same buffers, so all of them refuse, or none.
  void check();

 private:
  void add(int rank, BufferName place, std::size_t bytes, std::size_t part, bool is_output);
  static bool reaches_further(const Access& access, const Access* other);
  static std::string name_of(const Access& access);

  Round& round_;
  std::vector<Access>& accesses_;
};

// Of calls in which every output has the size of its input, and may be its own input.
void check_overlap(Round& round);

}  // namespace ringlet::collectives
