// Verifies and times what the ranks of a group call, each on a thread and a core of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "team.hpp"
#include "text.hpp"
#include "ringlet/collectives/group/member.hpp"

namespace ringlet::bench {

class WrongAnswer : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Variant {
  kInPlace,  // the result replaces the input of every rank, or lies around it
  kOut,      // every rank has a buffer of its own for the result
  kShared,   // a read-only result, from the pool; one for all ranks where they get the same
};

Variant variant_named(const std::string& name);

// Buffers of all ranks, in one mapping. Each starts one page and three lines further than the size of those before it:
// equal offsets inside a page would measure collisions in the first-level cache.
class Buffers {
 public:
  Buffers(int num_ranks, std::size_t bytes)
      : stride_((bytes + kLine - 1) / kLine * kLine + kSkew), pages_(stride_ * static_cast<std::size_t>(num_ranks)) {}

  std::byte* of(int rank) const { return pages_.data() + stride_ * static_cast<std::size_t>(rank); }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kSkew = 4096 + 3 * kLine;
  std::size_t stride_;
  Pages pages_;
};

// What the ranks call. Methods run on the thread of the rank.
class Subject {
 public:
  virtual ~Subject() = default;

  // Writes an input of which the answer is known, and where the result will be, what is none.
  virtual void fill(int rank) = 0;
  // Sets the input to zero: repeated sums in place would grow without bound; zeros stay what they are and cost the
  // same.
  virtual void clear(int rank) = 0;
  virtual collectives::Results call(collectives::Member& member) = 0;
  // Where the result of a rank goes that is not in what the call returns; null if there is no such place.
  virtual std::byte* output_of(int rank) = 0;
  // Null if the rank gets nothing.
  virtual bool is_right(int rank, const std::byte* result) = 0;
};

struct Schedule {
  int num_ranks;
  double region_seconds;
  std::size_t tail_calls;  // calls that are timed one by one
};

struct Timing {
  double seconds = 0.0;  // of one call: the slowest rank over back-to-back calls between two barriers
  std::size_t calls = 0;
  double faults_per_call = 0.0;
  double slowest_call = 0.0;

  std::string as_json() const;  // the fields, without braces
};

class RankTimer {
 public:
  RankTimer(Subject& subject, const Schedule& schedule);

  // Throws WrongAnswer if the subject is not right before and after it was timed.
  Timing measure();

 private:
  void run_or_exit(int rank);
  void run(int rank);
  void verify(collectives::Member& member);
  double region(collectives::Member& member);
  void find_slowest(collectives::Member& member);

  Subject& subject_;
  Schedule schedule_;
  collectives::Group group_;
  StartLine line_;
  std::vector<double> seconds_;  // of each rank
  std::size_t calls_ = 3;        // the fewest that a time is taken of
  Timing timing_;
  std::atomic<bool> is_wrong_{false};
};

// Reads the arguments over their defaults, calls `run(arguments)` and turns what it throws into a status: 3 for a wrong
// answer, 2 for anything else.
int run_main(int argc, char** argv, std::map<std::string, std::string> defaults, void (*run)(const Arguments&));

}  // namespace ringlet::bench
