// Records and counters that one thread writes, and that other threads and processes may read at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ringlet::sync {

// Word 0 is twice the number of the record, plus 1 while the other words are being written. A copy of the words between
// two loads of an equal, even word 0 is the record of that number:
//  - No word is older. The acquire of the first load pairs with the release that ends write().
//  - No word is newer. A word of a later record was stored with release after that record's odd word 0, and loaded with
//    acquire before the last load of word 0, which therefore sees the odd word or a later one.
// Words that set() changes afterwards are each the old or the new word.
template <std::size_t kWords>
class GuardedRecord {
 public:
  // Sets the words from 1 on; those beyond `words` become 0.
  template <std::size_t kCount>
  void write(std::uint64_t number, const std::array<std::uint64_t, kCount>& words) noexcept {
    static_assert(kCount < kWords);
    words_[0].store(number << 1 | 1, std::memory_order_relaxed);  // relaxed: the next store is release
    for (std::size_t i = 0; i < kCount; ++i) words_[i + 1].store(words[i], std::memory_order_release);
    for (std::size_t i = kCount + 1; i < kWords; ++i) words_[i].store(0, std::memory_order_release);
    words_[0].store(number << 1, std::memory_order_release);
  }
  // release: a reader that sees the word also sees the words set before it.
  void set(std::size_t index, std::uint64_t word) noexcept { words_[index].store(word, std::memory_order_release); }
  // For the writer. relaxed: no other thread writes.
  std::uint64_t own(std::size_t index) const noexcept { return words_[index].load(std::memory_order_relaxed); }

  // False if the record is being written, or was replaced meanwhile.
  bool read(std::array<std::uint64_t, kWords>& into) const noexcept {
    for (std::size_t i = 0; i < kWords; ++i) into[i] = words_[i].load(std::memory_order_acquire);
    // relaxed: the preceding loads are acquire, so this load is not reordered before them.
    return into[0] % 2 == 0 && words_[0].load(std::memory_order_relaxed) == into[0];
  }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

// A number that one thread changes. relaxed: it orders nothing.
class SoleCounter {
 public:
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(std::uint64_t more) noexcept { set(value() + more); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace ringlet::sync
