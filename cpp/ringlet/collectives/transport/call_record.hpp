// The record of a call in memory that other processes read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ringlet/collectives/call/call.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"

namespace ringlet::collectives {

// A call as another process sees it. Its parts have no addresses, but places.
struct ForeignCall {
  Call call;
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  std::vector<Place> own_inputs;
  std::vector<Place> own_outputs;
  std::vector<Place> results;
  std::uint64_t sequence = 0;  // of the call that this is; 0 for none
};

// What a rank tells of its call: the places of its parts, as others reach them and as its caller gave them, and of the
// results that it announced.
struct Telling {
  const Call& call;
  std::span<const Place> inputs;
  std::span<const Place> outputs;
  std::span<const Place> own_inputs;
  std::span<const Place> own_outputs;
  std::span<const Place> results;
};

// The record takes so many words.
std::size_t record_words(const Telling& telling);
void write_record(const Telling& telling, std::span<std::uint64_t> words);
// Keeps the memory that `into` has.
void read_record(std::span<const std::uint64_t> words, ForeignCall& into);

}  // namespace ringlet::collectives
