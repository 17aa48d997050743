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
struct ForeignCall {
  Call call;
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  std::vector<Place> own_inputs;
  std::vector<Place> own_outputs;
  std::vector<Place> results;
  std::uint64_t sequence = 0;  // of the call that this is; 0 for none
};

// The contents of a record: the names of the buffers, as other ranks reach them and as the caller gave them, and of the
// announced results.
struct Telling {
  const Call& call;
  std::span<const Place> inputs;
  std::span<const Place> outputs;
  std::span<const Place> own_inputs;
  std::span<const Place> own_outputs;
  std::span<const Place> results;
};

// Size of the record in words.
std::size_t record_words(const Telling& telling);
void write_record(const Telling& telling, std::span<std::uint64_t> words);
// Keeps the memory that `into` has.
void read_record(std::span<const std::uint64_t> words, ForeignCall& into);

}  // namespace ringlet::collectives
