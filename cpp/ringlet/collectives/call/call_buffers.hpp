// The buffers of all ranks in a call, and how this rank reaches them.
//
// Between processes, each rank names its buffers and writes the record of its call to memory that others can read
// before it arrives. All ranks read and write buffers in shared memory. Private inputs are read across processes if the
// system allows it and they are large enough; else they are copied before the work to shared memory that replaces them.
// Private outputs are written by their own rank only: directly or, for reductions that all ranks compute together, from
// shared memory that replaces the output until the work is done. Such memory is called staged.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ringlet/collectives/call/rank_waits.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

class CallBuffers : public RankWaits {
 public:
  // The names of the buffers of any rank that has arrived. The names of buffer 0 are in the slot.
  BufferName input_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).input) : further_name(rank, part, true);
  }
  BufferName output_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).output) : further_name(rank, part, false);
  }
  // The names of the caller's own buffers, even if staged memory replaces them; for the overlap check.
  BufferName own_input_name(int rank, std::size_t part) {
    const BufferName place = input_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, true) : place;
  }
  BufferName own_output_name(int rank, std::size_t part) {
    const BufferName place = output_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, false) : place;
  }

  // The buffers of any rank, after Round::arrive_for_work().
  MappedBuffer input(int rank, std::size_t part) {
    if (!is_between_processes()) return map_buffer(input_name(rank, part));
    return mine().mapped_inputs[part * static_cast<std::size_t>(num_ranks()) + static_cast<std::size_t>(rank)];
  }
  MappedBuffer output(int rank, std::size_t part) {
    if (!is_between_processes()) return map_buffer(output_name(rank, part));
    return mine().mapped_outputs[part * static_cast<std::size_t>(num_ranks()) + static_cast<std::size_t>(rank)];
  }

  // Whether all buffers of this call are mapped in this process. If not, algorithms work on blocks of at most
  // block_bytes() of each buffer, which they copy through `lanes` of this rank's scratch memory, numbered from 0.
  bool is_all_here() const noexcept { return is_all_here_; }
  // Whether the work writes this output, if all ranks get the same result: see take_staged.
  bool is_written(int rank, std::size_t part);
  std::size_t block_bytes(std::size_t num_lanes) const noexcept;
  const std::byte* fetch(MappedBuffer from, std::size_t bytes, std::size_t lane, std::size_t num_lanes);
  // Copies a buffer of any rank.
  void read(MappedBuffer from, std::size_t bytes, std::byte* to);
  // Copies unless another rank must write the output: see may_write().
  void copy(MappedBuffer from, std::size_t bytes, MappedBuffer to, kernels::Store store);
  // A rank writes to shared memory while it takes chunks, and to its own private output afterwards.
  bool may_write(MappedBuffer to) const noexcept;

  // Between processes: allocates shared memory in `block` that replaces a buffer of this rank; returns its name.
  BufferName stage(memory::Block& block, std::size_t bytes);

 protected:
  using RankWaits::RankWaits;

  // Thrown if the memory of another process could not be read.
  class Unreachable {};
  // The purpose of an arrival: to read slots, to publish buffer names, or to work on buffers.
  enum class Purpose { kSlots, kNames, kWork };
  // The work of an algorithm in place of stage_inputs() and stage_outputs(), if any.
  struct Staging {
    void (*call)(void*);
    void* context;
  };

  // Called before arriving, between processes.
  void name_buffers(Purpose purpose, Staging staging);
  // After all have arrived: maps the buffers of all ranks into this process.
  void map_buffers(std::size_t num_buffers);
  MappedBuffer map_buffer(int rank, BufferName place);
  static MappedBuffer map_buffer(BufferName place) noexcept { return {place.address(), place, 0}; }
  // Whether buffers may overlap although the staged memory that replaces them does not. If each process has one array,
  // arrays cannot overlap, so the names need not be sent, which would take time.
  bool may_overlap_unseen() const noexcept { return group_.shares_processes_ || call().buffers.size() > 1; }
  // Whether any rank has private outputs; the same on all ranks.
  bool has_private_outputs() const noexcept {
    return std::ranges::any_of(state_->mapped_outputs, [&](MappedBuffer spot) { return is_private_output(spot); });
  }
  // Throws if a buffer may no longer have belonged to its rank when it was read. Called before this rank publishes that
  // it has read the buffers.
  void check_sources() const;
  // After the work: copies results from staged memory to the outputs of this rank.
  void take_staged();

  bool writes_own_output_ = false;

 private:
  BufferName further_name(int rank, std::size_t part, bool is_input);
  BufferName own_name(int rank, std::size_t part, bool is_input);
  void stage_inputs();
  void stage_outputs();
  bool is_to_be_staged(BufferName place, std::size_t bytes) const noexcept;
  bool is_output_to_be_staged(BufferName place, std::size_t bytes) const noexcept;
  bool is_private_output(MappedBuffer to) const noexcept {
    return is_between_processes() && !to.name.is_null() && !to.name.is_shared();
  }
  bool shares_staged_output() const noexcept;
  void write_own_record();

  bool is_all_here_ = true;
};

}  // namespace ringlet::collectives
