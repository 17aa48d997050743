// Writers and readers of tables, in threads and in processes that are killed: no row is ever seen half written, no
// update is lost or made twice, and nobody waits for the dead.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>

#include "check.hpp"
#include "processes.hpp"
#include "table_writers.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using namespace std::chrono_literals;
using stress::check;
using stress::Processes;
using stress::Random;
using stress::Rows;
using tables::Change;
using tables::Table;

template <class T>
T sum_of(const std::vector<T>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), T{0});
}

// How many updates each process has begun and ended.
struct Counts {
  std::atomic<std::int64_t> begun[2];
  std::atomic<std::int64_t> ended[2];
};

Counts& shared_counts() {
  void* const shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(shared != MAP_FAILED, "memory can be mapped");
  return *new (shared) Counts{};
}

// Two processes add to single rows until both are killed; the parent looks on.
void killed_writers_lose_nothing(std::size_t num_rows, std::size_t row_count, std::size_t rounds) {
  const Rows<std::int64_t> rows(num_rows, row_count);
  Table table = rows.map();
  Counts& counts = shared_counts();
  Random random(num_rows);
  for (std::size_t round = 0; round < rounds; ++round) {
    Processes processes({.ranks = {1, 1}});
    processes.start([&](int process) {
      Table own = rows.map();
      Random own_random(round);
      for (;;) {
        counts.begun[process].fetch_add(1);
        rows.scatter(own, Change::kAdd, own_random.below(num_rows), 1);
        counts.ended[process].fetch_add(1);
      }
    });
    for (int look = 0; look < 3; ++look) rows.numbers(table);
    for (const int process : {0, 1}) {
      const std::int64_t before = counts.ended[process];
      while (counts.ended[process] == before) usleep(100);
      usleep(static_cast<useconds_t>(random.below(2000)));
      processes.kill(process);
    }
    for (const int process : {0, 1}) check(processes.wait_for(process) == -SIGKILL, "both were killed");
    rows.update(table, Change::kAdd, 0);  // takes every chunk once
    const std::int64_t sum = sum_of(rows.numbers(table));
    check(sum >= counts.ended[0] + counts.ended[1] && sum <= counts.begun[0] + counts.begun[1],
          "what was complete is there once: " + std::to_string(sum));
  }
}

// Rows that share words with their neighbours, all of them changed at once.
void killed_writers_leave_whole_rows(std::size_t num_rows, std::size_t row_count, std::size_t rounds) {
  const Rows<std::uint8_t> rows(num_rows, row_count);
  Table table = rows.map();
  for (std::size_t round = 0; round < rounds; ++round) {
    Processes processes({.ranks = {1, 1}});
    processes.start([&](int process) {
      Table own = rows.map();
      Random random(round * 2 + static_cast<std::size_t>(process));
      for (;;) {
        rows.update(own, Change::kAdd, 1);
        rows.scatter(own, Change::kAssign, random.below(num_rows), static_cast<std::uint8_t>(random.below(256)));
      }
    });
    usleep(static_cast<useconds_t>(500 + 100 * round % 1000));
    for (const int process : {0, 1}) {
      rows.numbers(table);
      processes.kill(process);
    }
    for (const int process : {0, 1}) check(processes.wait_for(process) == -SIGKILL, "both were killed");
    rows.update(table, Change::kAdd, 1);
    rows.numbers(table);
  }
}

// Holds the first chunk of the table, does `inside`, and then sets its first eight bytes.
template <class Inside>
void change_first_word(const Rows<std::int64_t>& rows, Inside&& inside) {
  tables::Memory memory{sync::Descriptor(dup(rows.fd()))};
  const tables::Patience patience{.timeout = 10s, .poll = nullptr};
  tables::Writer writer(memory, patience);
  writer.change(0, 0, 8, [&](const std::byte*, std::byte* result) {
    inside();
    const std::int64_t number = 7;
    std::memcpy(result, &number, sizeof number);
  });
}

// Runs a process that is killed once it has written into a seat that it wants to set the whole first row to `number`,
// and, if it begins, into the word of the chunk that it does.
void let_one_die(const Rows<std::int64_t>& rows, bool begins, std::int64_t number) {
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    tables::Memory memory{sync::Descriptor(dup(rows.fd()))};
    std::size_t index = 0;
    while (!memory.seat(index).owner.try_take(sync::OwnerWord::kNobody, sync::LivingProcess::self())) ++index;
    memory.reserve_journal(index);
    memory.seat(index).chunk = 0;
    memory.seat(index).first_word = 0;
    memory.seat(index).num_words = memory.layout().row_bytes / sizeof number;
    std::fill_n(reinterpret_cast<std::int64_t*>(memory.journal(index)), memory.seat(index).num_words, number);
    sync::ChunkWord& word = memory.word(0);
    if (begins) {
      check(word.try_hold(word.look(), index), "nobody else holds it");
      word.begin_change();
    }
    raise(SIGKILL);
  });
  check(processes.wait_for(0) == -SIGKILL, "it was killed");
}

// More of them than there are seats.
void whoever_comes_next_takes_the_chunks_and_seats_of_the_dead() {
  const Rows<std::int64_t> rows(2, 1);
  Table table = rows.map();
  for (std::size_t round = 0; round < tables::Layout::kNumSeats + 10; ++round) {
    Processes processes({.ranks = {1}});
    processes.start([&](int) { change_first_word(rows, [] { raise(SIGKILL); }); });
    check(processes.wait_for(0) == -SIGKILL, "it was killed");
    if (round % 3 == 0) rows.update(table, Change::kAdd, 1);
  }
  check(rows.numbers(table) == std::vector<std::int64_t>{25, 25}, "nothing of theirs was begun");
}

// The row is long: two who complete it would come across each other.
void one_alone_completes_what_was_begun(std::size_t rounds) {
  const Rows<std::int64_t> rows(1, 500'000);
  Table table = rows.map();
  for (std::size_t round = 0; round < rounds; ++round) {
    let_one_die(rows, true, 100);
    Processes processes({.ranks = {1, 1, 1}});
    processes.start([&](int) {
      Table own = rows.map();
      const std::vector<std::int64_t> ones(500'000, 1);
      processes.board().calls.fetch_add(1);
      while (processes.board().calls.load() < 3) std::this_thread::yield();
      own.update(Change::kAdd, 0, std::as_bytes(std::span(ones)), nullptr);
    });
    for (const int process : {0, 1, 2}) check(processes.wait_for(process) == 0, "others go on");
    check(rows.numbers(table).front() == 103, "what was begun comes first, and once");
  }
}

void the_dead_take_nothing_from_the_living() {
  const Rows<std::int64_t> rows(1, 1);
  for (std::size_t seat = 0; seat + 1 < tables::Layout::kNumSeats; ++seat) let_one_die(rows, false, 100);
  Processes processes({.ranks = {1}});
  processes.start([&](int) { change_first_word(rows, [] { raise(SIGSTOP); }); });
  while (!sync::is_stopped(processes.pid(0))) usleep(100);
  Table table = rows.map(50ms);
  try {
    rows.update(table, Change::kAdd, 1);
    check(false, "who lives keeps the chunk");
  } catch (const core::DeadlineError&) {
  }
  processes.go_on(0);
  check(processes.wait_for(0) == 0, "it goes on");
  check(rows.numbers(table).front() == 7, "who had not begun changes nothing");
}

void a_stopped_writer_is_named_and_goes_on() {
  const Rows<std::int64_t> rows(1, 1);
  Table table = rows.map(50ms);
  Processes processes({.ranks = {1}});
  processes.start([&](int) { change_first_word(rows, [] { raise(SIGSTOP); }); });
  while (!sync::is_stopped(processes.pid(0))) usleep(100);
  check(rows.numbers(table).front() == 0, "readers do not wait");
  try {
    rows.update(table, Change::kAdd, 1);
    check(false, "a writer waits no longer than it was told");
  } catch (const core::DeadlineError& error) {
    check(std::string(error.what()).starts_with("process " + std::to_string(processes.pid(0)) + ", which is stopped,"),
          error.what());
  }
  processes.go_on(0);
  check(processes.wait_for(0) == 0, "it goes on");
  rows.update(table, Change::kAdd, 1);
  check(rows.numbers(table).front() == 8, "both have written");
}

void threads_lose_nothing(std::size_t num_rows, std::size_t row_count, std::size_t calls) {
  constexpr int kWriters = 4;
  const Rows<std::int64_t> rows(num_rows, row_count);
  Table table = rows.map();
  std::atomic<int> writing{kWriters};
  stress::on_ranks(kWriters + 2, [&](int rank) {
    if (rank < kWriters) {
      Random random(static_cast<std::size_t>(rank));
      for (std::size_t call = 0; call < calls; ++call) {
        rows.scatter(table, Change::kAdd, random.below(num_rows), 1);
      }
      writing.fetch_sub(1);
      return;
    }
    std::int64_t last = 0;
    while (writing.load() > 0) {
      const std::int64_t sum = sum_of(rows.numbers(table));
      check(sum >= last, "what was seen stays");
      last = sum;
    }
  });
  check(sum_of(rows.numbers(table)) == static_cast<std::int64_t>(kWriters * calls), "every update is there once");
  check(table.version() == kWriters * calls, "and counted");
}

// More of them than there are seats.
void threads_wait_for_seats() {
  constexpr int kThreads = static_cast<int>(tables::Layout::kNumSeats) + 20;
  const Rows<std::int64_t> rows(1, 1);
  Table table = rows.map();
  stress::on_ranks(kThreads, [&](int) {
    for (int call = 0; call < 20; ++call) rows.update(table, Change::kAdd, 1);
  });
  check(rows.numbers(table).front() == kThreads * 20, "every update is there once");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000);
  const std::size_t rounds = calls / 2500;
  // Processes first: this program starts no thread before it forks.
  whoever_comes_next_takes_the_chunks_and_seats_of_the_dead();
  one_alone_completes_what_was_begun(rounds / 4);
  the_dead_take_nothing_from_the_living();
  a_stopped_writer_is_named_and_goes_on();
  killed_writers_lose_nothing(40, 64, rounds);
  killed_writers_lose_nothing(2, 1, rounds);
  killed_writers_lose_nothing(3, 5000, rounds);
  killed_writers_leave_whole_rows(2000, 3, rounds);
  killed_writers_leave_whole_rows(3, 5001, rounds);
  threads_lose_nothing(40, 64, calls / 10);
  threads_lose_nothing(2, 5000, calls / 100);
  threads_wait_for_seats();
  std::cout << 5 * rounds << " pairs of writers killed" << std::endl;
}
