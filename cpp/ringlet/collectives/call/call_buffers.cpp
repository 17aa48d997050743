#include "ringlet/collectives/call/call_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::collectives {

namespace {

constexpr std::size_t kLine = 64;
// Scratch memory that fits the L2 cache together with its source.
constexpr std::size_t kScratchBytes = std::size_t{512} << 10;
constexpr std::size_t kSmallestLane = 4096;

std::size_t padded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

bool is_to_root(Kind kind) { return kind == Kind::kReduce || kind == Kind::kGather; }

bool has_input(const Call& call, int rank) { return !is_from_root(call.kind) || rank == call.root; }
bool has_output(const Call& call, int rank) { return !is_to_root(call.kind) || rank == call.root; }

// Size of the output of a rank, from its call.
std::size_t output_bytes(const Call& call, const Buffer& part, int num_ranks) {
  switch (call.kind) {
    case Kind::kReduceScatter:
      return call.result_bytes(part) / static_cast<std::size_t>(num_ranks);
    case Kind::kAllGather:
    case Kind::kGather: {
      std::size_t bytes = core::size_of(part.dtype);
      for (std::size_t dim = 0; dim < part.shape.size(); ++dim) {
        const bool is_free = static_cast<int>(dim) == call.axis;
        bytes *= static_cast<std::size_t>(is_free ? part.output_length : part.shape[dim]);
      }
      return bytes;
    }
    case Kind::kScatter:
      return static_cast<std::size_t>(part.output_length) * row_bytes(part);
    case Kind::kAllToAll:
      return call.is_ragged ? static_cast<std::size_t>(part.output_length) * row_bytes(part) : part.input_bytes();
    default:
      return call.result_bytes(part);
  }
}

}  // namespace

// --- Before arriving -------------------------------------------------------------------------------------------------

void CallBuffers::name_buffers(Purpose purpose, Staging staging) {
  RankState::Set& set = own_set();
  set.inputs.clear();
  set.outputs.clear();
  for (const Buffer& part : set.call.buffers) {
    // An empty buffer has no name: no rank needs to reach it.
    const bool reads = has_input(set.call, rank_) && part.input != nullptr && part.count > 0;
    const bool writes =
        has_output(set.call, rank_) && part.output != nullptr && output_bytes(set.call, part, num_ranks()) > 0;
    // For a payload in the slot, the names of its buffers are needed only to check for overlap.
    const auto name = [&](const void* data) {
      return purpose == Purpose::kSlots ? world().known_buffer_name_of(data)
                                        : world().buffer_name_of(data, interruption_.poll());
    };
    set.inputs.push_back(reads ? name(part.input) : BufferName());
    set.outputs.push_back(writes ? name(part.output) : BufferName());
  }
  set.own_inputs = set.inputs;
  set.own_outputs = set.outputs;
  if (staging.call != nullptr) {
    staging.call(staging.context);
  } else if (purpose == Purpose::kWork) {
    stage_inputs();
    stage_outputs();
  }
  if (purpose == Purpose::kWork && world().can_use_cma() && mine().scratch == nullptr) {
    const std::size_t lanes = static_cast<std::size_t>(num_ranks()) * kSmallestLane;
    mine().scratch = std::make_unique<memory::Region>(std::max(kScratchBytes, lanes));
  }
  write_own_record();
  sync::Slot& slot = own_board().slots[set_];
  slot.input = set.inputs.empty() ? 0 : set.inputs.front().bits();
  slot.output = set.outputs.empty() ? 0 : set.outputs.front().bits();
  slot.result = set.result_names.empty() ? 0 : set.result_names.front().bits();
}

bool CallBuffers::is_to_be_staged(BufferName place, std::size_t bytes) const noexcept {
  if (place.is_null() || place.is_shared() || bytes == 0) return false;
  return bytes <= largest_staged(num_ranks()) || !world().can_use_cma();
}

// Reductions that all ranks compute together write private outputs through shared memory.
bool CallBuffers::is_output_to_be_staged(BufferName place, std::size_t bytes) const noexcept {
  const Kind kind = own_set().call.kind;
  const bool is_private = !place.is_null() && !place.is_shared() && bytes > 0;
  return is_to_be_staged(place, bytes) || (is_private && is_reduction(kind) && kind != Kind::kReduceScatter);
}

BufferName CallBuffers::stage(memory::Block& block, std::size_t bytes) {
  if (block == nullptr || block->size() < bytes) {
    block = nullptr;  // first, so that its memory can be reused
    block = world().allocate(bytes);
  }
  return world().buffer_name_of(block->data(), interruption_.poll()).as_staged();
}

void CallBuffers::stage_inputs() {
  RankState::Set& set = own_set();
  std::size_t total = 0;
  for (std::size_t index = 0; index < set.inputs.size(); ++index) {
    const std::size_t bytes = set.call.buffers[index].input_bytes();
    if (is_to_be_staged(set.inputs[index], bytes)) total += padded(bytes);
  }
  if (total == 0) return;
  const BufferName staged = stage(set.staged_inputs, total);
  std::size_t used = 0;
  for (std::size_t index = 0; index < set.inputs.size(); ++index) {
    const Buffer& part = set.call.buffers[index];
    if (!is_to_be_staged(set.inputs[index], part.input_bytes())) continue;
    std::memcpy(set.staged_inputs->data() + used, part.input, part.input_bytes());
    set.inputs[index] = staged + used;
    used += padded(part.input_bytes());
  }
}

void CallBuffers::stage_outputs() {
  RankState::Set& set = own_set();
  const auto bytes_of = [&](std::size_t index) { return output_bytes(set.call, set.call.buffers[index], num_ranks()); };
  std::size_t total = 0;
  for (std::size_t index = 0; index < set.outputs.size(); ++index) {
    if (is_output_to_be_staged(set.outputs[index], bytes_of(index))) total += padded(bytes_of(index));
  }
  if (total == 0) return;
  const BufferName staged = stage(set.staged_outputs, total);
  std::size_t used = 0;
  for (std::size_t index = 0; index < set.outputs.size(); ++index) {
    if (!is_output_to_be_staged(set.outputs[index], bytes_of(index))) continue;
    set.outputs[index] = staged + used;
    used += padded(bytes_of(index));
  }
}

// A record that is too long for its area is in a separate block; the area then holds length 0 and the name of the
// block.
void CallBuffers::write_own_record() {
  RankState::Set& set = own_set();
  const RecordContents telling{set.call, set.inputs, set.outputs, set.own_inputs, set.own_outputs, set.result_names};
  const std::size_t words = record_words(telling);
  RecordArea& area = block().record(rank_, set_);
  if (words < area.size()) {
    area[0] = words;
    write_record(telling, std::span(area).subspan(1));
    return;
  }
  const std::size_t bytes = words * sizeof(std::uint64_t);
  if (set.record == nullptr || set.record->size() < bytes) set.record = world().allocate(bytes);
  write_record(telling, {reinterpret_cast<std::uint64_t*>(set.record->data()), words});
  area[0] = 0;
  area[1] = world().buffer_name_of(set.record->data(), interruption_.poll()).bits();
  area[2] = words;
}

// --- After all have arrived ------------------------------------------------------------------------------------------

RemoteCall& Group::remote_call(RankState& state, int rank, std::uint64_t sequence) {
  RemoteCall& foreign = state.remote_calls[static_cast<std::size_t>(rank)];
  if (foreign.sequence == sequence) return foreign;
  const RecordArea& area = control_->record(rank, sequence % kSets);
  if (area[0] != 0) {
    read_record(std::span(area).subspan(1), foreign);
  } else {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(world_->address_of(BufferName(area[1])));
    read_record({words, area[2]}, foreign);
  }
  foreign.sequence = sequence;
  return foreign;
}

BufferName CallBuffers::further_name(int rank, std::size_t part, bool is_input) {
  if (!is_between_processes()) {
    const Buffer& found = call_of(rank).buffers[part];
    return BufferName::of_private(is_input ? found.input : found.output);
  }
  // A receiver of a broadcast may have no buffers.
  const auto place_in = [&](const std::vector<BufferName>& places) {
    return part < places.size() ? places[part] : BufferName();
  };
  if (group_.is_here(rank)) return place_in(is_input ? set_of(rank).inputs : set_of(rank).outputs);
  const RemoteCall& foreign = remote_call(rank);
  return place_in(is_input ? foreign.inputs : foreign.outputs);
}

BufferName CallBuffers::own_name(int rank, std::size_t part, bool is_input) {
  if (group_.is_here(rank)) return (is_input ? set_of(rank).own_inputs : set_of(rank).own_outputs)[part];
  const RemoteCall& foreign = remote_call(rank);
  return (is_input ? foreign.own_inputs : foreign.own_outputs)[part];
}

MappedBuffer CallBuffers::map_buffer(int rank, BufferName place) {
  if (place.is_null()) return {nullptr, place, rank};
  if (place.is_shared()) return {world().address_of(place, interruption_.poll()), place, rank};
  const bool is_here = group_.is_here(rank);
  is_all_here_ = is_all_here_ && is_here;
  return {is_here ? place.address() : nullptr, place, rank};
}

void CallBuffers::map_buffers(std::size_t num_buffers) {
  mine().mapped_inputs.clear();
  mine().mapped_outputs.clear();
  for (std::size_t part = 0; part < num_buffers; ++part) {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      mine().mapped_inputs.push_back(map_buffer(rank, input_name(rank, part)));
      mine().mapped_outputs.push_back(map_buffer(rank, output_name(rank, part)));
    }
  }
}

// --- The work --------------------------------------------------------------------------------------------------------

std::size_t CallBuffers::block_bytes(std::size_t num_lanes) const noexcept {
  if (is_all_here_) return SIZE_MAX;
  return state_->scratch->size() / num_lanes / kLine * kLine;
}

void CallBuffers::read(MappedBuffer from, std::size_t bytes, std::byte* to) {
  if (bytes == 0) return;
  if (from.here != nullptr) {
    std::memcpy(to, from.here, bytes);
    return;
  }
  const int process = process_of(from.rank);
  if (world().is_gone(process) || is_left_behind()) throw Unreachable();
  if (world().read(process, from.name, bytes, to) != CmaResult::kDone) throw Unreachable();
}

const std::byte* CallBuffers::fetch(MappedBuffer from, std::size_t bytes, std::size_t lane, std::size_t num_lanes) {
  if (from.here != nullptr || bytes == 0) return from.here;
  std::byte* const to = mine().scratch->data() + lane * block_bytes(num_lanes);
  read(from, bytes, to);
  return to;
}

bool CallBuffers::may_write(MappedBuffer to) const noexcept {
  if (!is_private_output(to)) return !writes_own_output_;
  return writes_own_output_ && to.rank == rank_;
}

void CallBuffers::copy(MappedBuffer from, std::size_t bytes, MappedBuffer to, kernels::Store store) {
  if (bytes == 0 || !may_write(to)) return;
  if (from.here != nullptr) {
    sync::fault_point();
    return collectives::copy(from.here, bytes, to.here, store);
  }
  if (from.name == to.name && process_of(from.rank) == process_of(to.rank)) return;  // the operation is in place
  read(from, bytes, to.here);
}

// A rank that has left the call may have reused its buffers. The pid of a process that ended or called exec may now
// denote another process.
void CallBuffers::check_sources() const {
  sync::SequenceNumber::order_reads();
  if (is_left_behind()) throw Unreachable();
  if (is_all_here_) return;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (!group_.is_here(rank) && !world().is_connected(process_of(rank))) throw Unreachable();
  }
}

// If all ranks get the same result, staged outputs are equal. Only the staged output of the lowest rank that has one is
// written, and all ranks copy their results from there.
bool CallBuffers::shares_staged_output() const noexcept {
  const Kind kind = own_set().call.kind;
  return kind == Kind::kAllReduce || kind == Kind::kAllGather || kind == Kind::kBroadcast;
}

bool CallBuffers::is_written(int rank, std::size_t part) {
  if (!is_between_processes() || !shares_staged_output() || !output(rank, part).name.is_staged()) return true;
  for (int lower = 0; lower < rank; ++lower) {
    if (output(lower, part).name.is_staged()) return false;
  }
  return true;
}

// The owner reuses staged memory at its next call but one: by then all ranks have arrived at the next call, so they
// have copied their results.
void CallBuffers::take_staged() {
  const RankState::Set& set = own_set();
  for (std::size_t part = 0; part < set.outputs.size(); ++part) {
    if (!set.outputs[part].is_staged()) continue;
    int source = rank_;
    for (int rank = 0; shares_staged_output() && rank < rank_; ++rank) {
      if (!output(rank, part).name.is_staged()) continue;
      source = rank;
      break;
    }
    const std::size_t bytes = output_bytes(set.call, set.call.buffers[part], num_ranks());
    std::memcpy(set.call.buffers[part].output, output(source, part).here, bytes);
  }
}

}  // namespace ringlet::collectives
