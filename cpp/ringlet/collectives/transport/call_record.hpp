// Serialization of the record of a call into memory that other processes read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ringlet/collectives/call/call.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"

namespace ringlet::collectives {

// A call of another process. Its buffers have names instead of addresses.
struct RemoteCall {
  Call call;
  std::vector<BufferName> inputs;
  std::vector<BufferName> outputs;
  std::vector<BufferName> own_inputs;
  std::vector<BufferName> own_outputs;
  std::vector<BufferName> results;
  std::uint64_t sequence = 0;  // the call's number; 0 for none
};

// The contents of a record: the names of the buffers, as other ranks reach them and as the caller gave them, and of the
// announced results.
struct RecordContents {
  const Call& call;
  std::span<const BufferName> inputs;
  std::span<const BufferName> outputs;
  std::span<const BufferName> own_inputs;
  std::span<const BufferName> own_outputs;
  std::span<const BufferName> results;
};

// Size of the record in words.
std::size_t record_words(const RecordContents& telling);
void write_record(const RecordContents& telling, std::span<std::uint64_t> words);
// Reads a record; reuses the memory of `into`.
void read_record(std::span<const std::uint64_t> words, RemoteCall& into);

}  // namespace ringlet::collectives
