#include "latency.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sstream>

#include "team.hpp"
#include "text.hpp"

namespace ringlet::bench {
namespace {

// A word that two threads write in turn: thread t waits until the count has t's parity, then adds one.
class alignas(64) Ball {
 public:
  // `wait(count)` is called as long as it is the other thread's turn.
  template <class Wait, class Wake>
  void play(std::uint32_t thread, std::uint32_t turns, Wait&& wait, Wake&& wake) {
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint32_t mine = 2 * turn + thread;
      // acquire pairs with the release below, as a hand-over of data would.
      for (std::uint32_t seen; (seen = count_.load(std::memory_order_acquire)) != mine;) wait(seen);
      count_.store(mine + 1, std::memory_order_release);
      wake();
    }
  }

  void park(std::uint32_t seen) { syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0); }
  void wake() { syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  std::atomic<std::uint32_t> count_{0};
};

// Nanoseconds of one hand-over, of two threads on `cores` that play `turns` turns each.
template <class Play>
double nanoseconds_per_turn(const std::vector<int>& cores, std::uint32_t turns, Play&& play) {
  StartLine line(cores.size());
  Ball ball;
  double seconds = 0.0;
  on_cores(cores, [&](std::size_t thread) {
    line.wait();
    const double start = seconds_now();
    play(ball, static_cast<std::uint32_t>(thread), turns);
    if (thread == 1) seconds = seconds_now() - start;
  });
  return seconds * 1e9 / (2.0 * turns);
}

template <class Measure>
std::string median_of(int rounds, Measure&& measure) {
  std::vector<double> values;
  for (int round = 0; round < rounds; ++round) values.push_back(measure());
  std::ostringstream out;
  out << median(values);
  return out.str();
}

// A core that pauses between looks disturbs the other one's store less.
void pass_spinning(Ball& ball, std::uint32_t thread, std::uint32_t turns) {
  const auto pause = [](std::uint32_t) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  };
  ball.play(thread, turns, pause, [] {});
}

void pass_parking(Ball& ball, std::uint32_t thread, std::uint32_t turns) {
  ball.play(thread, turns, [&](std::uint32_t seen) { ball.park(seen); }, [&] { ball.wake(); });
}

void pass_yielding(Ball& ball, std::uint32_t thread, std::uint32_t turns) {
  ball.play(thread, turns, [](std::uint32_t) { sched_yield(); }, [] {});
}

}  // namespace

std::string latencies(const std::vector<int>& cores, int rounds) {
  const std::vector<int> same{cores[0], cores[0]};
  std::string line = "null";
  std::string wake = "null";
  if (cores.size() > 1) {
    const std::vector<int> two{cores[0], cores[1]};
    line = median_of(rounds, [&] { return nanoseconds_per_turn(two, 200000, pass_spinning); });
    wake = median_of(rounds, [&] { return nanoseconds_per_turn(two, 5000, pass_parking); });
  }
  const std::string change = median_of(rounds, [&] { return nanoseconds_per_turn(same, 50000, pass_yielding); });
  return "{\"line_transfer\": " + line + ", \"futex_wake\": " + wake + ", \"switch\": " + change + "}";
}

}  // namespace ringlet::bench
