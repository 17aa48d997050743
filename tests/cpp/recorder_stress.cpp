// Flight recorder: readers see whole records while their writers work, rings pass from thread to thread, and the child
// of a fork writes nothing into the memory of its parent.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "ringlet/record/recorder.hpp"

namespace {

using namespace ringlet;
using record::Operation;
using record::Record;
using record::RingMemory;
using stress::check;

using Words = std::array<std::uint64_t, 16>;

// Each field follows from the sequence number.
Operation numbered(std::uint64_t number) {
  Operation operation{.group = ~number, .sequence = number, .bytes = 3 * number, .began = 1};
  operation.shape.fill(static_cast<std::int64_t>(number));
  return operation;
}

bool is_whole(const Words& words) {
  const std::uint64_t number = words[2];
  bool is_equal = words[1] == ~number && words[5] == 3 * number;
  for (std::size_t dim = 0; dim < record::kMostDims; ++dim) is_equal = is_equal && words[6 + dim] == number;
  return is_equal;
}

void readers_see_whole_records(std::size_t calls) {
  memory::Segment segment = memory::Segment::create(sizeof(RingMemory));
  segment.reserve(0, sizeof(RingMemory));
  record::Ring ring(segment, 0);
  const auto& memory = *reinterpret_cast<const RingMemory*>(segment.data());
  std::atomic<bool> is_over = false;
  std::jthread reader([&] {
    std::size_t seen = 0;
    while (!is_over.load() || seen == 0) {
      for (const Record& slot : memory.records) {
        Words words;
        if (!slot.read(words) || words[0] == 0) continue;
        ++seen;
        check(is_whole(words), "a record that was read is whole");
        check(words[record::kEndedWord] == 0 || words[record::kArrivedWord] != 0, "a call ends after it arrived");
      }
    }
  });
  for (std::size_t call = 1; call <= calls; ++call) {
    const std::uint64_t number = ring.begin(numbered(call));
    check(number == call, "records are numbered from 1");
    ring.arrive(number, call % 2 == 0);
    ring.end(number, call % 3 != 0);
  }
  is_over = true;
  reader.join();
  check(memory.last.value() == calls && memory.totals[0].count.value() == calls, "all calls are counted");
  check(memory.totals[0].bytes.value() == 3 * calls * (calls + 1) / 2, "their bytes are");
}

// Operations recorded in the memory of this process.
std::uint64_t recorded() {
  void* const memory = mmap(nullptr, record::kBytes, PROT_READ, MAP_SHARED, record::descriptor(), 0);
  check(memory != MAP_FAILED, "the memory can be mapped");
  const auto* const rings = reinterpret_cast<const RingMemory*>(static_cast<std::byte*>(memory) + record::kRingsOffset);
  std::uint64_t count = 0;
  for (std::size_t ring = 0; ring < record::kMostRings; ++ring) count += rings[ring].totals[1].count.value();
  munmap(memory, record::kBytes);
  return count;
}

bool call() {
  Operation operation{.what = 1};
  const std::uint64_t number = record::begin(operation);
  record::arrive(number, true);
  record::end(number, true);
  return number != 0;
}

void rings_pass_from_thread_to_thread(std::size_t rounds) {
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { check(call(), "a thread finds a ring"); });
  }
  check(recorded() == 8 * rounds, "no call is lost");
}

void threads_without_a_ring_are_not_recorded() {
  const std::uint64_t before = recorded();
  const std::size_t num_threads = record::kMostRings + 9;
  std::atomic<std::size_t> with_ring = 0;
  {
    std::latch all(static_cast<std::ptrdiff_t>(num_threads));
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < num_threads; ++i) {
      threads.emplace_back([&] {
        with_ring += call() ? 1 : 0;
        all.arrive_and_wait();
        call();
      });
    }
  }
  const std::size_t rings_left = record::kMostRings - 1;  // this thread has one
  check(with_ring == rings_left, "as many threads have a ring as there are");
  check(recorded() - before == 2 * rings_left, "only these record");
}

// Numbers of places are used once, also by the child of a fork; the newest are kept.
void places_are_known_by_their_numbers() {
  const std::uint64_t first = record::add_place("in step (train.py:8)");
  std::uint64_t last = first;
  for (std::size_t i = 1; i < record::kNumPlaces; ++i) last = record::add_place(std::string(1000, 'x'));
  check(record::has_place(first) && record::has_place(last), "as many places are kept as there is room for");
  check(record::add_place("") == last + 1 && !record::has_place(first), "a further one replaces the oldest");
  const pid_t child = fork();
  if (child == 0) {
    bool is_right = record::add_place("") == 0 && !record::has_place(last);
    record::open(memfd_create("child", MFD_ALLOW_SEALING), {});
    is_right = is_right && !record::has_place(last) && record::add_place("") > last + 1;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "a child does not use the places of its parent");
}

void a_child_records_in_memory_of_its_own() {
  check(call(), "the parent records");
  const std::uint64_t before = recorded();
  const int parents = record::descriptor();
  const pid_t child = fork();
  if (child == 0) {
    bool is_right = !call() && record::descriptor() == -1 && lseek(parents, 0, SEEK_CUR) == -1;
    record::open(memfd_create("child", MFD_ALLOW_SEALING), {});
    is_right = is_right && record::claim_opening() && call() && recorded() == 1;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the child has memory of its own");
  check(recorded() == before, "and leaves its parent's alone");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000);
  readers_see_whole_records(calls);
  check(!call(), "nothing is recorded before the recorder is open");
  check(record::claim_opening() && !record::claim_opening(), "one caller opens it");
  record::open(memfd_create("recorder", MFD_ALLOW_SEALING), {});
  rings_pass_from_thread_to_thread(calls / 500);
  a_child_records_in_memory_of_its_own();
  places_are_known_by_their_numbers();
  threads_without_a_ring_are_not_recorded();
}
