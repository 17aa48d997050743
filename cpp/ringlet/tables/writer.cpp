#include "ringlet/tables/writer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "ringlet/core/error.hpp"
#include "ringlet/sync/fault.hpp"
#include "ringlet/sync/shared_copy.hpp"

namespace ringlet::tables {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Processes start at different seats; threads of one process start at the same seat.
std::size_t take_seat(Memory& memory, const Patience& patience) {
  const std::uint64_t own = memory.own_code();
  Waiting waiting(memory, patience);
  for (;; waiting.for_any_seat()) {
    for (std::size_t i = 0; i < Layout::kNumSeats; ++i) {
      const std::size_t seat = (static_cast<std::size_t>(sync::Incarnation::pid_of(own)) + i) % Layout::kNumSeats;
      if (memory.seat(seat).owner.try_take(sync::OwnerWord::kUnowned, own)) return seat;
    }
  }
}

}  // namespace

// --- waiting ---------------------------------------------------------------------------------------------------------

void Waiting::for_seat(std::size_t seat) {
  if (seat >= Layout::kNumSeats) {
    throw core::ArgumentError("a table of " + memory_.layout().describe() +
                              " is damaged: its rows are locked by writer slot " + std::to_string(seat) +
                              ", which does not exist.");
  }
  seat_ = seat;
  if (pause_.count() > 0 && Writer::settle(memory_, seat)) return;
  pass_time();
}

void Waiting::for_any_seat() {
  bool is_one_free = false;
  for (std::size_t seat = 0; seat < Layout::kNumSeats; ++seat) is_one_free |= Writer::settle(memory_, seat);
  if (!is_one_free) pass_time();
}

// A chunk is held for microseconds unless the holder was preempted or has exited.
void Waiting::pass_time() {
  constexpr std::chrono::microseconds kYields{100};
  constexpr std::chrono::nanoseconds kShortestPause = std::chrono::microseconds(50);
  constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(1);
  if (pause_.count() == 0) {
    const auto now = sync::Clock::now();
    if (yields_end_ == sync::Clock::time_point{}) yields_end_ = now + kYields;
    if (now >= yields_end_) pause_ = kShortestPause;
    return std::this_thread::yield();
  }
  if (deadline_.remaining().count() <= 0) give_up();
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  if (patience_.poll != nullptr) (*patience_.poll)();
}

void Waiting::give_up() const {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience_.timeout).count();
  const std::string table = "a table of " + memory_.layout().describe();
  const std::string waited = " for " + std::to_string(milliseconds) + " ms";
  if (seat_ == Layout::kNumSeats) {
    throw core::DeadlineError("all " + std::to_string(seat_) + " writer slots of " + table + " were in use" + waited +
                              ". Let fewer threads write at the same time, or wait longer.");
  }
  const int pid = sync::Incarnation::pid_of(memory_.seat(seat_).owner.owner());
  throw core::DeadlineError("process " + std::to_string(pid) + (sync::is_stopped(pid) ? ", which is stopped," : "") +
                            " has held rows of " + table + waited +
                            ". Continue or end that process: its incomplete change is then completed or undone.");
}

// --- writing ---------------------------------------------------------------------------------------------------------

Writer::Writer(Memory& memory, const Patience& patience)
    : memory_(memory), patience_(patience), seat_(take_seat(memory, patience)) {
  try {
    memory_.reserve_journal(seat_);
  } catch (...) {
    memory_.seat(seat_).owner.give_up();
    throw;
  }
}

void Writer::hold(std::size_t chunk) {
  sync::fault_point();
  memory_.seat(seat_).chunk = chunk;
  sync::ChunkWord& word = memory_.word(chunk);
  Waiting waiting(memory_, patience_);
  for (;;) {
    const sync::ChunkWord::State seen = word.look();
    if (seen.is_held()) {
      waiting.for_seat(seen.holder());
    } else if (word.try_hold(seen, seat_)) {
      return;
    }
  }
}

// The journal has whole words; the words at the ends may include unchanged bytes.
Writer::Note Writer::note_ends(std::size_t chunk, std::size_t begin, std::size_t size) {
  Seat& seat = memory_.seat(seat_);
  const std::size_t end = (begin + size + kWord - 1) / kWord;
  const Note note(chunk, begin / kWord, end - begin / kWord);
  sync::fault_point();
  seat.first_word = note.first_word;
  seat.num_words = note.num_words;
  const auto keep = [&](std::size_t word) {
    std::memcpy(memory_.journal(seat_) + word * kWord, memory_.chunk(chunk) + word * kWord, kWord);
  };
  if (begin % kWord != 0) keep(note.first_word);
  if ((begin + size) % kWord != 0) keep(end - 1);
  return note;
}

bool Writer::Note::is_within(const Layout& layout) const noexcept {
  const std::size_t words = layout.chunk_bytes / kWord;
  return first_word <= words && num_words <= words - first_word;
}

void Writer::complete(Memory& memory, std::size_t index, const Note& note) noexcept {
  const auto* const journal = reinterpret_cast<const std::uint64_t*>(memory.journal(index));
  sync::store_shared({journal + note.first_word, note.num_words}, memory.chunk(note.chunk) + note.first_word * kWord);
  memory.word(note.chunk).end_change();
}

void Writer::copy(std::size_t chunk, std::size_t begin, std::span<std::byte> to) {
  hold(chunk);
  sync::load_shared(memory_.chunk(chunk) + begin, to);
  memory_.word(chunk).give_back();
}

// --- recovery --------------------------------------------------------------------------------------------------------

void Writer::put_right(Memory& memory, std::size_t index) noexcept {
  const Note note(memory.seat(index));
  if (note.chunk >= memory.layout().num_chunks) return;
  sync::ChunkWord& word = memory.word(note.chunk);
  const sync::ChunkWord::State left = word.look();
  if (!left.is_held() || left.holder() != index) return;
  if (left.is_changing() && note.is_within(memory.layout())) {
    complete(memory, index, note);
  } else {
    word.give_back();
  }
}

bool Writer::settle(Memory& memory, std::size_t index) {
  Seat& seat = memory.seat(index);
  const std::uint64_t owner = seat.owner.owner();
  if (owner == sync::OwnerWord::kUnowned || !sync::Incarnation::has_ended(memory.fd(), owner)) return false;
  if (!seat.owner.try_take(owner, memory.own_code())) return true;  // another thread has taken the seat
  put_right(memory, index);
  seat.owner.give_up();
  return true;
}

}  // namespace ringlet::tables
