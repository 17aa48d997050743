// Identity of a process run: pid plus program start.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ringlet/sync/counters.hpp"

namespace ringlet::sync {

// A process from its start, fork or exec to its end or next exec: exec keeps the pid and the start time, but nothing
// that the program before was doing goes on.
//
// An incarnation has a number in a file that it shares with others, and a lock on the byte of that number. The lock
// belongs to an open file description of its own, to which one mapping is the only reference. So the kernel releases
// the lock when the address space is gone, with its last thread, and at no other time: descriptors that are closed do
// not matter, and a fork does not inherit the mapping. Invariant: of an incarnation whose byte is not locked, no thread
// can run any more, and its number is never given out again.
class Incarnation {
 public:
  // Of this process. Without such locks, the pid alone identifies it: an exec is then not seen.
  Incarnation(int file, Tally& numbers);
  Incarnation(const Incarnation&) = delete;
  Incarnation& operator=(const Incarnation&) = delete;
  ~Incarnation();

  bool is_of_this_process() const noexcept;  // not after a fork
  // The pid and the number, in a word that processes can share; never 0.
  std::uint64_t code() const noexcept { return code_; }

  static int pid_of(std::uint64_t code) noexcept { return static_cast<int>(code >> 32); }
  // By any process that has the file, but not by a description that holds one of its locks.
  static bool has_ended(int file, std::uint64_t code);

 private:
  std::uint64_t code_;
  std::uint64_t generation_;
  void* mapping_ = nullptr;
};

// Those that one object of this process has had in one file: a fork begins another.
class OwnIncarnations {
 public:
  ~OwnIncarnations() { delete newest_.load(); }

  // By any thread.
  std::uint64_t own_code(int file, Tally& numbers) {
    const Node* const newest = newest_.load();
    if (newest != nullptr && newest->incarnation.is_of_this_process()) return newest->incarnation.code();
    return add(newest, file, numbers);
  }

 private:
  // Earlier ones stay: another thread may be looking at them.
  struct Node {
    Node(int file, Tally& numbers) : incarnation(file, numbers) {}

    Incarnation incarnation;
    std::unique_ptr<const Node> before;
  };
  std::uint64_t add(const Node* before, int file, Tally& numbers);

  std::atomic<const Node*> newest_{nullptr};
};

}  // namespace ringlet::sync
