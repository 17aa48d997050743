// Private state of a rank.
#pragma once

#include <array>
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

namespace ringlet::collectives {

// Memory that a call reads or writes: see overlap.hpp. Equal addresses in the private memories of two processes do not
// overlap, so `space` is the process; shared memory has a space of its own.
struct Access {
  std::uint64_t begin;
  std::uint64_t end;
  int space;
  int rank;
  std::size_t part;
  bool is_output;
};

// Of one rank. Its sets are looked at by the other ranks of its process, between its arrival and its next call but one;
// all else is its own.
struct RankState {
  struct Set {
    Call call;
    std::shared_ptr<Group> subgroup;  // of a split: the group that this rank made for its color

    // Results that this rank allocated for others. Among threads:
    std::vector<std::byte*> results;
    std::vector<Results> holds;  // references to them, one entry for each rank, which moves it out
    // Between processes:
    std::vector<BufferName> result_names;
    Results kept;  // until the call is over

    // Between processes: what this rank's buffers are called, what stands for those that others cannot reach, and what
    // they were called before.
    std::vector<BufferName> inputs;
    std::vector<BufferName> outputs;
    std::vector<BufferName> own_inputs;
    std::vector<BufferName> own_outputs;
    memory::Block staged_inputs;
    memory::Block staged_outputs;
    memory::Block record;  // one that its RecordArea is too small for
  };
  std::array<Set, kSets> sets;

  std::uint64_t sequence = 0;  // the last call that it arrived at
  std::uint32_t series = 0;    // of the calls to come
  sync::Flag is_busy;
  Chunks chunks;
  PathTuner path_tuner;  // of rank 0: to reach across (0), or to exchange pieces (1)
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<MappedBuffer> targets;  // of a gather
  std::vector<Access> accesses;       // of an OverlapCheck

  // Between processes: the buffers of the call in progress, [part * P + rank], and its shared results; calls of ranks
  // elsewhere; memory for what is on its way to and from them.
  std::vector<MappedBuffer> mapped_inputs;
  std::vector<MappedBuffer> mapped_outputs;
  std::vector<MappedBuffer> results;
  std::vector<RemoteCall> remote_calls;
  std::unique_ptr<memory::Region> scratch;
};

}  // namespace ringlet::collectives
