// Private state of a rank.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ringlet/collectives/algorithms/chunks.hpp"
#include "ringlet/collectives/algorithms/path_tuner.hpp"
#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"
#include "ringlet/collectives/transport/call_record.hpp"
#include "ringlet/memory/region.hpp"
#include "ringlet/sync/time_mark.hpp"

namespace ringlet::collectives {

// Memory that a call reads or writes: see overlap.hpp. Equal addresses in the private memories of two processes do not
// overlap, so `space` is the process; shared memory is a separate space.
struct Access {
  std::uint64_t begin;
  std::uint64_t end;
  int space;
  int rank;
  std::size_t part;
  bool is_output;
};

// State of one rank. Other ranks of its process read its sets between its arrival and its next call but one; only the
// rank itself accesses other members.
struct RankState {
  struct Set {
    Call call;
    std::shared_ptr<Group> subgroup;  // in a split: the group that this rank has created for its color

    // Results that this rank allocated for others. Among threads:
    std::vector<std::byte*> results;
    std::vector<Results> holds;  // references to `results`, one entry for each rank, which moves it out
    // Between processes:
    std::vector<BufferName> result_names;
    Results kept;  // results that are held until the call is over

    // Between processes: the names of this rank's buffers, the staged memory that replaces unreachable ones, and their
    // original names.
    std::vector<BufferName> inputs;
    std::vector<BufferName> outputs;
    std::vector<BufferName> own_inputs;
    std::vector<BufferName> own_outputs;
    memory::Block staged_inputs;
    memory::Block staged_outputs;
    memory::Block record;  // memory for a record that is too long for its RecordArea
  };
  std::array<Set, kSets> sets;

  std::uint64_t sequence = 0;          // the last call at which it arrived
  std::uint32_t series = 0;            // series of the next calls: see Call::series
  sync::Clock::duration extra_time{};  // see Member::set_extra_time
  sync::Flag is_busy;
  sync::RelaxedNumber thread;  // thread that made its last call, for messages
  sync::TimeMark next_move;    // when it may move to another core: see RankWaits::patience
  sync::Clock::duration between_moves = std::chrono::microseconds(500);
  int waits_apart = 0;  // the number of waits for which it is patient after a move
  Chunks chunks;
  PathTuner path_tuner;   // used by rank 0: read across (0), or exchange pieces (1)
  PathTuner store_tuner;  // used by exchanges: kernels::Store
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<MappedBuffer> targets;  // used by a gather
  std::vector<Access> accesses;       // used by an OverlapCheck

  // Between processes: the buffers of the call in progress, [part * P + rank], and its shared results; the calls of
  // remote ranks; memory for data in transit.
  std::vector<MappedBuffer> mapped_inputs;
  std::vector<MappedBuffer> mapped_outputs;
  std::vector<MappedBuffer> results;
  std::vector<RemoteCall> remote_calls;
  std::unique_ptr<memory::Region> scratch;
};

}  // namespace ringlet::collectives
