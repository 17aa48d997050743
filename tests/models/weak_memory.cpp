// The words of cpp/ringlet/sync under relacy: every order of loads and stores that the C++ memory model allows, for two
// or three threads. The headers are the real ones, with relacy's atomics in place of the standard ones.
//
//   weak_memory                 runs all cases: prints "<case> ok" or "<case> FAILED"
//   weak_memory <case> sites    prints the atomic accesses of the case that have an order
//   weak_memory <case> <site>   runs the case with that access relaxed; all:0 is all of them, all:1 also the fences
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <thread>

// The last, for it defines names of the language as macros.
#include <relacy/relacy.hpp>
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno

namespace shim {

// An access of the headers, by file and line. relacy replaces `new` during a run, so nothing here allocates.
struct Site {
  const char* file;
  unsigned line;
};
Site sites[64];  // those that were met and have an order
std::size_t num_sites = 0;
const char* weakened_file = "";  // "all" for every access
unsigned weakened_line = 0;

inline rl::memory_order order_at(std::memory_order order, const std::source_location& where) {
  if (order == std::memory_order_relaxed || std::strcmp(weakened_file, "all") == 0) return rl::mo_relaxed;
  const char* const slash = std::strrchr(where.file_name(), '/');
  const Site site{slash == nullptr ? where.file_name() : slash + 1, where.line()};
  if (site.line == weakened_line && std::strcmp(site.file, weakened_file) == 0) return rl::mo_relaxed;
  const auto is_this = [&](const Site& each) {
    return each.line == site.line && std::strcmp(each.file, site.file) == 0;
  };
  if (std::none_of(sites, sites + num_sites, is_this) && num_sites < std::size(sites)) sites[num_sites++] = site;
  switch (order) {
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_acq_rel:
      return rl::mo_acq_rel;
    default:
      return rl::mo_seq_cst;
  }
}

}  // namespace shim

// What the headers find as namespace std.
namespace relacy_std {

using namespace std;

template <class T>
class atomic {
 public:
  using Where = std::source_location;
  static constexpr bool is_always_lock_free = true;

  atomic() : value_(T{}) {}
  atomic(T value) : value_(value) {}

  T load(memory_order order = memory_order_seq_cst, Where where = Where::current()) const {
    return value_.load(shim::order_at(order, where), RL_INFO);
  }
  void store(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) {
    value_.store(value, shim::order_at(order, where), RL_INFO);
  }
  T exchange(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) {
    return value_(RL_INFO).exchange(value, shim::order_at(order, where));
  }
  T fetch_add(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) {
    return value_(RL_INFO).fetch_add(value, shim::order_at(order, where));
  }
  T fetch_sub(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) {
    return value_(RL_INFO).fetch_sub(value, shim::order_at(order, where));
  }
  bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst,
                               Where where = Where::current()) {
    return value_(RL_INFO).compare_exchange_strong(expected, value, shim::order_at(order, where), rl::mo_relaxed);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst,
                             Where where = Where::current()) {
    return value_(RL_INFO).compare_exchange_weak(expected, value, shim::order_at(order, where));
  }

 private:
  rl::atomic<T> value_;
};

inline void atomic_thread_fence(memory_order order) {
  if (std::strcmp(shim::weakened_file, "all") == 0 && shim::weakened_line == 1) return;
  rl::atomic_thread_fence(order == memory_order_acquire ? rl::mo_acquire : rl::mo_release, RL_INFO);
}

}  // namespace relacy_std

#define std relacy_std
#define static_assert(...) static_assert(true)  // relacy's atomics are larger
#include "ringlet/sync/chunk_word.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/event.hpp"
#include "ringlet/sync/failure_word.hpp"
#include "ringlet/sync/gate.hpp"
#include "ringlet/sync/process/process_refcount.hpp"
#include "ringlet/sync/slot.hpp"
#include "ringlet/sync/wait.hpp"
#undef static_assert
#undef std

namespace {

namespace sync = ringlet::sync;
using Data = rl::var<unsigned>;

// The kernel's part of a futex: it compares and sleeps, or wakes, under one lock. Null outside of a run.
struct Kernel {
  rl::mutex mutex;
  rl::condition_variable woken;
};
Kernel* kernel = nullptr;

}  // namespace

namespace ringlet::sync {

Wake futex_wait(const relacy_std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds) noexcept {
  kernel->mutex.lock(RL_INFO);
  if (word.load(std::memory_order_relaxed) == expected) kernel->woken.wait(kernel->mutex, RL_INFO);
  kernel->mutex.unlock(RL_INFO);
  return Wake::kWoken;
}

void futex_wake_all(const relacy_std::atomic<std::uint32_t>&) noexcept {
  kernel->mutex.lock(RL_INFO);
  kernel->woken.notify_all(RL_INFO);
  kernel->mutex.unlock(RL_INFO);
}

void futex_wake_one(const relacy_std::atomic<std::uint32_t>& word) noexcept { futex_wake_all(word); }

// Waits park at once.
bool yields_pay(Clock::time_point) noexcept { return false; }
void note_yield(Clock::time_point, Clock::duration) noexcept {}

}  // namespace ringlet::sync

namespace {

template <class Ready>
void wait(sync::Event& event, Ready&& is_ready) {
  sync::wait_until(event, sync::Patience{}, sync::kForever, nullptr, is_ready);
}

#define CHECK(condition) RL_ASSERT(condition)

// --- The cases -------------------------------------------------------------------------------------------------------

// A rank that arrives last wakes the others; each then reads what the others wrote before they arrived.
struct arrival : rl::test_suite<arrival, 2> {
  Kernel futex;
  sync::Event event;
  sync::Slot slots[2];
  Data payloads[2];

  void before() { kernel = &futex; }
  void thread(unsigned rank) {
    payloads[rank](RL_INFO) = rank + 1;
    slots[rank].publish(1);
    const auto all_have_arrived = [&] { return slots[0].has_arrived(1) && slots[1].has_arrived(1); };
    if (all_have_arrived()) {
      event.notify();
    } else {
      wait(event, all_have_arrived);
    }
    CHECK(payloads[1 - rank](RL_INFO) == 2 - rank);
  }
};

// Rank 1 wants to leave a call; rank 0 goes without the gate if it sees no leaver. They agree.
struct gate : rl::test_suite<gate, 3> {
  sync::Slot slots[3];
  sync::Flag has_leavers;
  sync::Gate decision;
  rl::atomic<int> went;
  rl::atomic<int> left;

  void before() {
    went($) = 0;
    left($) = 0;
  }
  bool all_have_arrived() const {
    return slots[0].has_arrived(1) && slots[1].has_arrived(1) && slots[2].has_arrived(1);
  }
  void thread(unsigned rank) {
    slots[rank].publish(1);
    if (rank == 2) return;
    if (rank == 0) {
      if (!all_have_arrived()) return;
      if (!has_leavers.is_set() || decision.propose_to_go(1)) went($) = 1;
    } else {
      has_leavers.set(true);
      if (!(all_have_arrived() ? decision.propose_to_go(1) : decision.propose_to_call_off(1))) left($) = 1;
    }
  }
  void after() { CHECK(!(went($) == 1 && left($) == 1)); }
};

// Every chunk is taken once, and who sees all chunks finished sees their data.
struct work_queue : rl::test_suite<work_queue, 2> {
  static constexpr std::size_t kChunks = 2;
  Kernel futex;
  sync::Event event;
  sync::WorkQueue queues[2];
  Data chunks[kChunks];

  void before() {
    kernel = &futex;
    for (auto& queue : queues) queue.reset();
  }
  void thread(unsigned rank) {
    std::size_t finished = 0;
    for (std::size_t taken = 0; (taken = queues[0].take(kChunks)) < kChunks; ++finished) {
      chunks[taken](RL_INFO) = static_cast<unsigned>(taken) + 1;  // a race if another thread has taken it, too
    }
    queues[rank].publish_done(finished);
    const auto is_finished = [&] { return queues[0].done() + queues[1].done() == kChunks; };
    if (is_finished()) {
      event.notify();
    } else {
      wait(event, is_finished);
    }
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) CHECK(chunks[chunk](RL_INFO) == chunk + 1);
  }
};

// The text of the first failure is whole.
struct failure_word : rl::test_suite<failure_word, 3> {
  sync::FailureWord word;
  Data texts[2];

  void thread(unsigned process) {
    if (process < 2) {
      texts[process](RL_INFO) = process + 1;
      word.claim({.cause = 0, .author = static_cast<std::uint16_t>(process), .lost = 0});
    }
    if (const auto claim = word.claimed()) CHECK(texts[claim->author](RL_INFO) == claim->author + 1U);
  }
};

// The owner uses a block again after the last hold has been released.
struct refcount : rl::test_suite<refcount, 2> {
  sync::ProcessRefcount holds;
  sync::SequenceNumber named;
  Data block;

  void thread(unsigned process) {
    if (process == 0) {
      block(RL_INFO) = 1;
      holds.add(1);
      named.publish(1);
      if (!holds.is_held()) block(RL_INFO) = 2;
    } else if (named.has_reached(1)) {
      CHECK(block(RL_INFO) == 1);
      holds.release();
    }
  }
};

// A rank that has left a call no longer writes the output of another.
struct left_seq : rl::test_suite<left_seq, 2> {
  sync::SequenceNumber left;
  Data output;

  void thread(unsigned rank) {
    if (rank == 0) {
      output(RL_INFO) = 1;
      left.publish(1);
    } else if (left.has_reached(1)) {
      output(RL_INFO) = 2;
    }
  }
};

// A reader of a chunk that finds its word unchanged has read the data of one change: no byte is older, and none is
// newer. The loops of shared_copy.hpp cast the memory to words of 8 bytes, which relacy's are not, so that the two
// below stand for them; test_models.py compares their orders.
using SharedWord = relacy_std::atomic<std::uint64_t>;
void store_shared(SharedWord& word, std::uint64_t value) { word.store(value, std::memory_order_release); }
std::uint64_t load_shared(const SharedWord& word) { return word.load(std::memory_order_acquire); }

struct chunk_is_not_older : rl::test_suite<chunk_is_not_older, 2> {
  sync::ChunkWord word;
  SharedWord data[2];

  void before() {
    word.try_hold(word.look(), 0);
    word.begin_change();
  }
  void thread(unsigned process) {
    if (process == 0) {
      for (SharedWord& each : data) store_shared(each, 1);
      word.end_change();
    } else if (const auto first = word.look(); !first.is_changing()) {
      for (const SharedWord& each : data) CHECK(load_shared(each) == 1);
    }
  }
};

struct chunk_is_not_newer : rl::test_suite<chunk_is_not_newer, 2> {
  sync::ChunkWord word;
  SharedWord data[2];

  void before() { word.try_hold(word.look(), 0); }
  void thread(unsigned process) {
    if (process == 0) {
      word.begin_change();
      for (SharedWord& each : data) store_shared(each, 1);
    } else if (const auto first = word.look(); !first.is_changing()) {
      const std::uint64_t one = load_shared(data[0]);
      const std::uint64_t other = load_shared(data[1]);
      if (word.is_unchanged_since(first)) CHECK(one == 0 && other == 0);
    }
  }
};

// One process at a time holds a chunk, and sees what the one before wrote.
struct chunk_holder : rl::test_suite<chunk_holder, 2> {
  sync::ChunkWord word;
  Data data;

  void before() { data(RL_INFO) = 0; }
  void thread(unsigned process) {
    const auto seen = word.look();
    if (seen.is_held() || !word.try_hold(seen, process)) return;
    data(RL_INFO) = data(RL_INFO) + 1;
    word.give_back();
  }
};

// A rank that has read memory which its owner had reused finds that the owner is over. relacy does not move other
// accesses across those of seq_cst, as the memory model may: test_models.py runs this case with every order relaxed.
struct reuse : rl::test_suite<reuse, 2> {
  sync::SequenceNumber over;
  SharedWord input;

  void thread(unsigned rank) {
    if (rank == 0) {
      over.publish_before_reuse(1);
      input.store(1, std::memory_order_relaxed);
    } else {
      const std::uint64_t seen = input.load(std::memory_order_relaxed);
      sync::SequenceNumber::order_reads();
      if (!over.has_reached(1)) CHECK(seen == 0);
    }
  }
};

// --- Runs ------------------------------------------------------------------------------------------------------------

template <class Case>
bool is_right(bool searches_all, unsigned long long schedules) {
  rl::test_params params;
  std::ostream nowhere(nullptr);
  std::ostream& output = std::getenv("RINGLET_RELACY_HISTORY") == nullptr ? nowhere : std::cout;
  params.search_type = searches_all ? rl::fair_full_search_scheduler_type : rl::random_scheduler_type;
  params.iteration_count = static_cast<rl::iteration_t>(schedules);
  params.output_stream = &output;
  params.progress_stream = &output;
  return rl::simulate<Case>(params);
}

struct Entry {
  const char* name;
  bool (*run)(bool, unsigned long long);
};
const Entry kCases[] = {
    {"arrival", is_right<arrival>},
    {"gate", is_right<gate>},
    {"work_queue", is_right<work_queue>},
    {"failure_word", is_right<failure_word>},
    {"refcount", is_right<refcount>},
    {"left_seq", is_right<left_seq>},
    {"chunk_is_not_older", is_right<chunk_is_not_older>},
    {"chunk_is_not_newer", is_right<chunk_is_not_newer>},
    {"chunk_holder", is_right<chunk_holder>},
    {"reuse", is_right<reuse>},
};

}  // namespace

int main(int argc, char** argv) {
  const char* const wanted = std::getenv("RINGLET_RELACY_SCHEDULES");
  const bool searches_all = wanted != nullptr && wanted == std::string("all");
  const unsigned long long schedules = wanted == nullptr ? 20'000 : std::strtoull(wanted, nullptr, 10);
  for (const Entry& entry : kCases) {
    if (argc > 1 && entry.name != std::string(argv[1])) continue;
    std::string what = argc > 2 ? argv[2] : "";
    if (const std::size_t colon = what.find(':'); colon != std::string::npos) {
      shim::weakened_line = static_cast<unsigned>(std::atoi(what.c_str() + colon + 1));
      what.resize(colon);
      shim::weakened_file = what.c_str();
    }
    const bool right = entry.run(searches_all, schedules);
    if (what == "sites") {
      for (std::size_t i = 0; i < shim::num_sites; ++i) {
        std::cout << shim::sites[i].file << ":" << shim::sites[i].line << "\n";
      }
    } else {
      std::cout << entry.name << (right ? " ok" : " FAILED") << std::endl;
    }
  }
}
