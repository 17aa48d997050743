// What the stress programs share: a check that ends the program, and threads as ranks.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>
#include <vector>

namespace ringlet::stress {

inline void check(bool holds, std::string_view statement, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (holds) return;
  std::cerr << file << ':' << line << ": does not hold: " << statement << std::endl;
  std::_Exit(1);
}

// Runs `body(rank)` on one thread per rank and waits for all of them.
template <class Body>
void on_ranks(int num_ranks, Body&& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

// The number of calls that the command line asks for.
inline std::size_t calls_of(int argc, char** argv, std::size_t otherwise) {
  return argc > 1 ? std::strtoull(argv[1], nullptr, 10) : otherwise;
}

// A small generator of repeatable numbers; ranks that start it alike draw alike.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t limit) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>(state_ >> 33) % limit;
  }

 private:
  std::uint64_t state_;
};

}  // namespace ringlet::stress
