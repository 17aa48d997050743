// An object that threads use while several close it: one of them closes it, and one use is its last.
#include <atomic>

#include "check.hpp"
#include "ringlet/sync/use_count.hpp"

int main(int argc, char** argv) {
  using ringlet::stress::check;
  constexpr int kThreads = 4;
  const std::size_t objects = ringlet::stress::calls_of(argc, argv, 100'000) / 100;
  for (std::size_t object = 0; object < objects; ++object) {
    ringlet::sync::UseCount uses;
    std::atomic<int> num_inside{0};
    std::atomic<int> num_closed{0};
    std::atomic<int> num_last{0};
    ringlet::stress::on_ranks(kThreads, [&](int rank) {
      for (int call = 0; uses.begin(); ++call) {
        num_inside.fetch_add(1);
        check(num_last.load() == 0, "no use begins after the last one has ended");
        if (rank < 2 && call == 20 && uses.close()) num_closed.fetch_add(1);
        num_inside.fetch_sub(1);
        if (!uses.end()) continue;
        check(num_inside.load() == 0, "the last use ends alone");
        num_last.fetch_add(1);
      }
    });
    check(num_closed.load() == 1, "one thread closes the object");
    check(num_last.load() == 1, "one use is the last");
  }
}
