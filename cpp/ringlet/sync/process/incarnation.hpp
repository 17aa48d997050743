// Identity of a process run: pid plus program start.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ringlet/sync/counters.hpp"

namespace ringlet::sync {

// A process from its start, fork or exec to its end or next exec: exec keeps the pid and the start time, but ends all
// activity of the previous program.
//
// An incarnation has a number in a file that it shares with others, and a lock on the byte of that number. The lock
// belongs to a separate open file description, to which one mapping is the only reference. The kernel therefore
// releases the lock exactly when the address space ends with its last thread: closed descriptors have no effect, and a
// fork does not inherit the mapping. Invariant: if the byte of an incarnation is not locked, none of its threads can
// run any more, and its number is never assigned again.
class Incarnation {
 public:
  // The incarnation of this process. On systems without such locks, the pid alone identifies it, so an exec is not
  // detected.
  Incarnation(int file, Tally& numbers);
  Incarnation(const Incarnation&) = delete;
  Incarnation& operator=(const Incarnation&) = delete;
  ~Incarnation();

  bool is_of_this_process() const noexcept;  // false after a fork
  // The pid and the number, in a word that processes can share; never 0.
  std::uint64_t code() const noexcept { return code_; }

  static int pid_of(std::uint64_t code) noexcept { return static_cast<int>(code >> 32); }
  // For any process that has the file, but not with a description that holds one of its locks.
  static bool has_ended(int file, std::uint64_t code);

 private:
  std::uint64_t code_;
  std::uint64_t generation_;
  void* mapping_ = nullptr;
};

// The incarnations of one object of this process in one file: each fork begins a new one.
class OwnIncarnations {
 public:
  ~OwnIncarnations() { delete newest_.load(); }

  // May be called by any thread.
  std::uint64_t own_code(int file, Tally& numbers) {
    const Node* const newest = newest_.load();
    if (newest != nullptr && newest->incarnation.is_of_this_process()) return newest->incarnation.code();
    return add(newest, file, numbers);
  }

 private:
  // Earlier nodes are kept, because another thread may be reading them.
  struct Node {
    Node(int file, Tally& numbers) : incarnation(file, numbers) {}

    Incarnation incarnation;
    std::unique_ptr<const Node> before;
  };
  std::uint64_t add(const Node* before, int file, Tally& numbers);

  std::atomic<const Node*> newest_{nullptr};
};

}  // namespace ringlet::sync
