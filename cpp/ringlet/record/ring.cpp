#include "ringlet/record/ring.hpp"

#include <bit>
#include <chrono>

#include "ringlet/core/error.hpp"

namespace ringlet::record {

namespace {

constexpr std::size_t kStep = 128;  // records for which memory is reserved at once

}  // namespace

std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Ring::Ring(memory::Segment& segment, std::size_t offset) : segment_(&segment), offset_(offset) {
  segment.reserve(offset, kPage);
}

bool Ring::reserve_for(std::uint64_t number) noexcept {
  if (number <= num_reserved_ || num_reserved_ == kNumRecords) return true;
  try {
    segment_->reserve(offset_ + kPage + num_reserved_ * sizeof(Record), kStep * sizeof(Record));
  } catch (const core::SharedMemoryError&) {
    return false;
  }
  num_reserved_ += kStep;
  return true;
}

std::uint64_t Ring::begin(const Operation& operation) noexcept {
  const std::uint64_t number = memory().last.value() + 1;
  if (!reserve_for(number)) return 0;
  record(number).write(number, std::bit_cast<std::array<std::uint64_t, 13>>(operation));
  memory().last.set(number);
  return number;
}

void Ring::arrive(std::uint64_t number, bool has_waited) noexcept {
  Record& written = record(number);
  written.set(kArrivedWord, has_waited ? static_cast<std::uint64_t>(now()) : written.own(kBeganWord));
}

void Ring::end(std::uint64_t number, bool has_returned) noexcept {
  Record& written = record(number);
  const std::uint64_t what = written.own(kWhatWord);
  const std::uint64_t began = written.own(kBeganWord);
  const std::uint64_t arrived = written.own(kArrivedWord);
  const auto ended = static_cast<std::uint64_t>(now());
  written.set(kEndedWord, has_returned ? ended : ended | kRaisedBit);
  Totals& totals = memory().totals[Operation::kind_of(what) % kMostKinds];
  if ((Operation::flags_of(what) & Operation::kContinues) == 0) {
    totals.count.add(1);
    totals.bytes.add(written.own(kBytesWord) & ((std::uint64_t{1} << kPlaceBit) - 1));
  }
  totals.nanoseconds.add(ended - began);
  totals.waiting_nanoseconds.add((arrived == 0 ? ended : arrived) - began);
}

}  // namespace ringlet::record
