// Blocks allocated and released by many threads: memory is never handed out twice, the counts come back to nothing, and
// what nobody uses is given back without being asked for, also in a process that was forked.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "check.hpp"
#include "ringlet/memory/pool.hpp"

namespace {

using namespace std::chrono_literals;
using ringlet::memory::Block;
using ringlet::memory::Pool;
using ringlet::memory::Region;
using ringlet::stress::check;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// Waits for what has to come; far longer than it takes, because sanitized programs on busy machines are slow.
template <class Holds>
bool comes_true(Holds&& holds) {
  const auto end = Pool::Clock::now() + 60s;
  while (!holds()) {
    if (Pool::Clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Those of a sanitizer included; nothing where the system does not tell.
std::optional<std::size_t> num_threads() {
  const std::filesystem::path tasks("/proc/self/task");
  if (!std::filesystem::exists(tasks)) return std::nullopt;
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(tasks), {}));
}

// Allocates blocks of up to `limit` bytes, now and then far larger ones, from many threads.
void use(Pool& pool, std::size_t rounds, std::chrono::microseconds pause) {
  ringlet::stress::on_ranks(8, [&](int rank) {
    ringlet::stress::Random random(static_cast<std::uint64_t>(rank));
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t bytes = random.below(round % 500 == 0 ? 5'000'000 : 20'000);
      const Block block = pool.allocate(bytes);
      check(block->size() >= bytes, "a block holds what was asked for");
      std::memset(block->data(), rank + 1, bytes);
      for (std::size_t i = 0; i < bytes; i += 997) {
        check(block->data()[i] == static_cast<std::byte>(rank + 1), "nobody else writes to a live block");
      }
      if (pause.count() > 0 && random.below(50) == 0) std::this_thread::sleep_for(pause);
    }
  });
}

void many_threads_use_one_pool(std::size_t rounds) {
  Pool& pool = ringlet::memory::result_pool();
  use(pool, rounds, 0us);
  check(pool.statistics().live_blocks == 0, "released blocks are not live");
  check(pool.statistics().idle_bytes > 0, "released blocks are kept");
  check(pool.trim() > 0 && pool.statistics().idle_blocks == 0, "trim gives all of them back");
}

void regions_have_their_size() {
  for (const std::size_t kind : {Region::kMapped, Region::kHugePage}) {
    for (const int beside : {-65, -64, -63, -1, 0, 1, 64}) {
      const Region region(static_cast<std::size_t>(static_cast<int>(kind) + beside));
      std::memset(region.data(), 1, region.size());
    }
  }
}

void idle_memory_goes_back_by_itself() {
  constexpr auto kKeepIdle = 300ms;
  const auto threads_before = num_threads();
  Pool pool(kKeepIdle);
  for (int turn = 0; turn < 2; ++turn) {  // the second time, the thread of the first has ended
    {
      const std::vector<Block> blocks{pool.allocate(5000), pool.allocate(kMebibyte), pool.allocate(3 * kMebibyte)};
    }
    const auto released = Pool::Clock::now();
    check(pool.allocate(kMebibyte)->size() == kMebibyte && pool.statistics().idle_blocks <= 3, "idle memory is reused");
    check(comes_true([&] { return pool.statistics().idle_bytes == 0; }), "idle memory goes back");
    check(Pool::Clock::now() - released >= kKeepIdle, "and not before its time");
    check(pool.statistics().idle_blocks == 0 && pool.trim() == 0, "nothing is left");
    check(comes_true([&] { return num_threads() == threads_before; }), "nor is a thread");
  }
}

// Regions become stale while others are taken and come back.
void what_is_in_use_stays(std::size_t rounds) {
  Pool pool(200us);
  use(pool, rounds, 300us);
  check(comes_true([&] { return pool.statistics().idle_blocks == 0; }), "all goes back in the end");
  check(pool.statistics().live_blocks == 0, "nothing is live");
}

void a_pool_may_end_before_its_thread() {
  for (int turn = 0; turn < 50; ++turn) {
    const auto pool = std::make_unique<Pool>(std::chrono::microseconds(20 * turn));
    pool->allocate(kMebibyte);
    if (turn % 2 == 0) std::this_thread::sleep_for(1ms);
  }
}

#if defined(__GLIBC__)
void without_threads_stale_memory_goes_when_the_next_comes_back() {
  pthread_attr_t before;
  pthread_attr_t endless;
  check(pthread_getattr_default_np(&before) == 0 && pthread_attr_init(&endless) == 0, "there are defaults");
  check(pthread_attr_setstacksize(&endless, std::size_t{1} << 50) == 0, "a thread may ask for any stack");
  check(pthread_setattr_default_np(&endless) == 0, "and fails to start");
  Pool pool(100ms);
  pool.allocate(kMebibyte);
  check(pool.statistics().live_blocks == 0, "a block comes back all the same");
  std::this_thread::sleep_for(150ms);
  pool.allocate(2 * kMebibyte);
  check(pool.statistics().idle_bytes <= 2 * kMebibyte, "until the next one comes back");
  check(pthread_setattr_default_np(&before) == 0, "threads can start again");
  std::this_thread::sleep_for(150ms);
  pool.allocate(kMebibyte);
  check(comes_true([&] { return pool.statistics().idle_blocks == 0; }), "and then memory goes back by itself");
}
#else
void without_threads_stale_memory_goes_when_the_next_comes_back() {}  // no way to make threads fail here
#endif

// As a forked child uses the pool: it has the parent's idle regions, and no thread but its own.
int live_as_child(Pool& pool) {
  alarm(120);
  const Block block = pool.allocate(kMebibyte);
  std::memset(block->data(), 7, block->size());
  pool.allocate(2 * kMebibyte);
  const bool is_given_back = comes_true([&] { return pool.statistics().idle_bytes == 0; });
  return is_given_back && block->data()[kMebibyte - 1] == std::byte{7} ? 0 : 1;
}

void a_forked_child_has_a_pool_that_works() {
  const auto threads_before = num_threads();
  Pool& pool = ringlet::memory::result_pool();
  pool.set_keep_idle(20ms);
  for (int turn = 0; turn < 10; ++turn) {  // at any moment in the life of the parent's thread
    {
      const std::vector<Block> blocks{pool.allocate(kMebibyte), pool.allocate(6000)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(4 * turn));
    const pid_t child = fork();
    if (child == 0) _exit(live_as_child(pool));
    int status = -1;
    check(child > 0 && waitpid(child, &status, 0) == child, "a child comes and goes");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it gives its idle memory back, and keeps what it uses");
  }
  check(comes_true([&] { return pool.statistics().idle_bytes == 0; }), "the parent goes on as before");
  check(comes_true([&] { return num_threads() == threads_before; }), "and comes to rest");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = ringlet::stress::calls_of(argc, argv, 100'000) / 8;
  std::jthread([] {}).join();  // beside the first thread, sanitizers start one of their own, which stays
  // QEMU, emulating one program, cannot start a thread in a process that was forked beside another. Nor can the address
  // sanitizer of older compilers for certain: what a thread of the parent had locked in it stays locked in the child.
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool kCanFork = false;
#else
  constexpr bool kCanFork = true;
#endif
  if (kCanFork && std::getenv("RINGLET_EMULATED") == nullptr) a_forked_child_has_a_pool_that_works();
  regions_have_their_size();
  idle_memory_goes_back_by_itself();
  what_is_in_use_stays(rounds / 4);
  a_pool_may_end_before_its_thread();
  without_threads_stale_memory_goes_when_the_next_comes_back();
  ringlet::memory::result_pool().set_keep_idle(1h);
  many_threads_use_one_pool(rounds);  // whose thread is asleep when the program ends
}
