// The last operations of one thread, in memory that other processes read: python/ringlet/observe/recorder.py decodes
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ringlet/memory/segment.hpp"
#include "ringlet/sync/guarded_record.hpp"

namespace ringlet::record {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kNumRecords = 1024;
inline constexpr std::size_t kMostKinds = 16;
inline constexpr std::size_t kMostDims = 6;
inline constexpr std::uint64_t kNone = 0xFF;       // value of an 8-bit field that the operation does not have
inline constexpr std::uint64_t kNoPlace = 0xFFFF;  // the same for 16 bits

// A place in the program, as text that ends with a zero: records of operations have its number, of which they keep the
// lowest 16 bits.
using Place = sync::GuardedRecord<32>;
inline constexpr std::size_t kNumPlaces = 256;
inline constexpr std::size_t kPlaceBytes = sizeof(Place) - sizeof(std::uint64_t);

// The data that are known when an operation begins. Numbers stand for names: see open(). The words of several fields
// are composed by shifts, because a word that was just written in parts takes longer to load.
struct Operation {
  static constexpr std::uint64_t kHasBuffers = 1;
  static constexpr std::uint64_t kContinues = 2;  // a later round of the operation before, which has been counted

  std::uint64_t group = 0;  // equal on the ranks of one group, and on no other
  std::uint64_t sequence = 0;
  std::uint64_t what = 0;   // from bit 0: kind, op, algorithm, dtype and ndim of the first array, flags (8 bits each);
                            // from bit 48: number of arrays
  std::uint64_t where = 0;  // 16 bits each: rank, number of ranks, root, axis
  std::uint64_t bytes = 0;  // bits 0 to 47; begin() adds the place
  std::array<std::int64_t, kMostDims> shape{};  // the first dimensions
  std::uint64_t fingerprints = 0;               // 32 bits each: of the call, of its buffers
  std::int64_t began = 0;                       // nanoseconds of CLOCK_MONOTONIC, like all times here

  static constexpr std::uint64_t kind_of(std::uint64_t what) noexcept { return what & 0xFF; }
  static constexpr std::uint64_t flags_of(std::uint64_t what) noexcept { return what >> 40 & 0xFF; }
};

// Word 0: see GuardedRecord. Then the operation, the time of the end, with kRaisedBit if it raised an error, and the
// time at which all ranks had arrived; 0 for what has not happened yet. In this order, a reader that sees the end sees
// the arrival, too.
using Record = sync::GuardedRecord<16>;
inline constexpr std::size_t kWhatWord = 3;
inline constexpr std::size_t kBytesWord = 5;
inline constexpr std::size_t kBeganWord = 13;
inline constexpr std::size_t kEndedWord = 14;
inline constexpr std::size_t kArrivedWord = 15;
inline constexpr unsigned kPlaceBit = 48;  // lowest bit of the number of the place in kBytesWord
inline constexpr std::uint64_t kRaisedBit = std::uint64_t{1} << 63;
static_assert(sizeof(Record) == 128 && sizeof(Operation) == sizeof(Record) - 3 * sizeof(std::uint64_t));

// Sums over all operations of one kind that have ended.
struct Totals {
  sync::SoleCounter count;
  sync::SoleCounter bytes;
  sync::SoleCounter nanoseconds;
  sync::SoleCounter waiting_nanoseconds;  // time until all ranks had arrived
};

struct RingMemory {
  sync::SoleCounter last;    // number of the newest record, counted from 1; its place is (last - 1) % kNumRecords
  sync::SoleCounter thread;  // id of the last owner
  std::array<Totals, kMostKinds> totals;
  alignas(kPage) std::array<Record, kNumRecords> records;
};
static_assert(sizeof(RingMemory) == kPage + kNumRecords * sizeof(Record));

// A ring in a segment, at an offset. One thread owns it at a time.
class Ring {
 public:
  // Reserves the first page. Throws core::SharedMemoryError.
  Ring(memory::Segment& segment, std::size_t offset);

  void set_thread(std::uint64_t id) noexcept { memory().thread.set(id); }
  // Records that an operation has begun; returns the number of the record, or 0 if it could not be stored.
  std::uint64_t begin(const Operation& operation) noexcept;
  // All ranks have arrived: now, or before this rank did if it has not waited.
  void arrive(std::uint64_t number, bool has_waited) noexcept;
  void end(std::uint64_t number, bool has_returned) noexcept;

 private:
  RingMemory& memory() const noexcept { return *reinterpret_cast<RingMemory*>(segment_->data() + offset_); }
  Record& record(std::uint64_t number) const noexcept { return memory().records[(number - 1) % kNumRecords]; }
  bool reserve_for(std::uint64_t number) noexcept;

  memory::Segment* segment_;
  std::size_t offset_;
  std::size_t num_reserved_ = 0;  // records
};

std::int64_t now() noexcept;

}  // namespace ringlet::record
