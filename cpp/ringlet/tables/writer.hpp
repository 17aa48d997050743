// How processes that may be killed at any instruction change a table.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "ringlet/sync/process/process.hpp"
#include "ringlet/sync/wait.hpp"
#include "ringlet/tables/memory.hpp"

namespace ringlet::tables {

// A *writer* is a thread during one call. It owns a *seat*: its *journal*, and the *chunk* it names. One change is
//
//   1. name       seat.chunk = chunk                                      the chunk is as it was
//   2. hold       word: free -> held by the seat                          "
//   3. note       the journal, and which words of it count, get the new   "
//                 content of what changes
//   4. begin      word: -> changing                                       it becomes what the journal says,
//   5. store      journal -> chunk                                        "
//   6. end        word: -> free, count + 1                                and is
//
// Each step is complete before the next one is seen (see ChunkWord), so wherever the owner of a seat was killed, the
// word of the chunk that its seat names tells what to do:
//
//   not held by this seat     nothing: it had not begun, or had ended
//   held                      give the word back: the chunk is old
//   held and changing         steps 5 and 6 once more: the chunk becomes new
//
// It can be done again from the beginning, for it does not touch the journal. And it is done by one thread at a time,
// the one that has put its own process in the place of the ended one as owner of the seat (see OwnerWord); if that is
// killed, too, the seat has an ended owner again, and all else is as it was. A seat gets another writer only after it
// was given up, with no word naming it. So every word that is held names a seat whose owner lives and runs, or can be
// replaced by a waiting thread: no thread waits for an ended process.
//
// A thread holds at most one word, and waits for nothing while it does: no circle of waiting can form.

// How long to wait for a live process.
struct Patience {
  sync::Clock::duration timeout;  // for one chunk, or a seat
  sync::Poll* poll;               // may be null
};

// What a thread does until a seat's owner has moved on.
class Waiting {
 public:
  Waiting(Memory& memory, const Patience& patience)
      : memory_(memory), patience_(patience), deadline_(patience.timeout) {}

  // Puts right what the owner of `seat` left, if that has ended; else waits for a while. Throws DeadlineError.
  void for_seat(std::size_t seat);
  void for_any_seat();

 private:
  void pass_time();
  [[noreturn]] void give_up() const;

  Memory& memory_;
  const Patience& patience_;
  sync::Deadline deadline_;
  sync::Clock::time_point yields_end_{};
  std::chrono::nanoseconds pause_{0};
  std::size_t seat_ = Layout::kNumSeats;  // waited for; that many: any
};

class Writer {
 public:
  // Waits for a free seat. Throws DeadlineError, SharedMemoryError.
  Writer(Memory& memory, const Patience& patience);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { memory_.seat(seat_).owner.give_up(); }

  // Replaces `size` bytes of a chunk from `begin` on by what `compute(old, result)` writes to `result`. It throws
  // nothing.
  template <class Compute>
  void change(std::size_t chunk, std::size_t begin, std::size_t size, Compute&& compute) {
    hold(chunk);
    const Note note = note_ends(chunk, begin, size);
    compute(memory_.chunk(chunk) + begin, memory_.journal(seat_) + begin);
    memory_.word(chunk).begin_change();
    complete(memory_, seat_, note);
  }
  // A copy that no other writer can disturb.
  void copy(std::size_t chunk, std::size_t begin, std::span<std::byte> to);

  // Puts right what the owner of a seat left, if that has ended; false if it lives, or there is none.
  static bool settle(Memory& memory, std::size_t seat);

 private:
  // What a seat says of a change. Any process can write to a seat: what it says is read once, and then looked at.
  struct Note {
    explicit Note(const Seat& seat) : chunk(seat.chunk), first_word(seat.first_word), num_words(seat.num_words) {}
    Note(std::size_t of_chunk, std::size_t first, std::size_t count)
        : chunk(of_chunk), first_word(first), num_words(count) {}
    bool is_within(const Layout& layout) const noexcept;

    std::size_t chunk;
    std::size_t first_word;
    std::size_t num_words;
  };

  void hold(std::size_t chunk);
  Note note_ends(std::size_t chunk, std::size_t begin, std::size_t size);
  // Steps 5 and 6.
  static void complete(Memory& memory, std::size_t seat, const Note& note) noexcept;
  static void put_right(Memory& memory, std::size_t seat) noexcept;

  Memory& memory_;
  const Patience& patience_;
  std::size_t seat_;
};

}  // namespace ringlet::tables
