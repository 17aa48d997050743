// Crash-safe changes of a table: a process may be killed at any instruction.
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
// Each step is complete before the next one is visible (see ChunkWord). If the owner of a seat was killed, the word of
// the chunk that the seat names determines the recovery:
//
//   not held by this seat     nothing: it had not begun, or had ended
//   held                      give the word back: the chunk is old
//   held and changing         steps 5 and 6 once more: the chunk becomes new
//
// Recovery can be repeated from its beginning, because it does not change the journal. One thread at a time performs
// it: the thread whose process has replaced the ended one as owner of the seat (see OwnerWord). If that process is
// killed too, the seat has an ended owner again and nothing else has changed. A seat gets another writer only after it
// was released, when no word names it. Every held word therefore names a seat whose owner is alive or can be replaced
// by a waiting thread: no thread waits for an ended process.
//
// A thread holds at most one word and does not wait while holding it, so no deadlock can occur.

// Limits of a wait for a live process.
struct Patience {
  sync::Clock::duration timeout;  // of the wait for one chunk or seat
  sync::Poll* poll;               // may be null
};

// The wait of a thread until the owner of a seat has finished.
class Waiting {
 public:
  Waiting(Memory& memory, const Patience& patience)
      : memory_(memory), patience_(patience), deadline_(patience.timeout) {}

  // Recovers the change of the owner of `seat` if the owner has ended, else waits for a limited time. Throws
  // DeadlineError.
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
  std::size_t seat_ = Layout::kNumSeats;  // the awaited seat; kNumSeats for any seat
};

class Writer {
 public:
  // Waits for a free seat. Throws DeadlineError, SharedMemoryError.
  Writer(Memory& memory, const Patience& patience);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { memory_.seat(seat_).owner.give_up(); }

  // Replaces `size` bytes of a chunk from `begin` on by the bytes that `compute(old, result)` writes to `result`.
  // `compute` must not throw.
  template <class Compute>
  void change(std::size_t chunk, std::size_t begin, std::size_t size, Compute&& compute) {
    hold(chunk);
    const Note note = note_ends(chunk, begin, size);
    compute(memory_.chunk(chunk) + begin, memory_.journal(seat_) + begin);
    memory_.word(chunk).begin_change();
    complete(memory_, seat_, note);
  }
  // Copies bytes of a chunk while holding it, so no other writer can interfere.
  void copy(std::size_t chunk, std::size_t begin, std::span<std::byte> to);

  // Recovers the change of a seat's owner if the owner has ended; false if it is alive, or the seat has no owner.
  static bool settle(Memory& memory, std::size_t seat);

 private:
  // The description of a change in a seat. Any process can write to a seat, so the contents are read once and then
  // checked.
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
  // Performs steps 5 and 6.
  static void complete(Memory& memory, std::size_t seat, const Note& note) noexcept;
  static void put_right(Memory& memory, std::size_t seat) noexcept;

  Memory& memory_;
  const Patience& patience_;
  std::size_t seat_;
};

}  // namespace ringlet::tables
