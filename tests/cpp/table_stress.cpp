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

// Writes into a seat that this process wants to set the whole first row to `number`, and, if it begins, into the word
// of the chunk that it does.
void leave_undone(tables::Memory& memory, bool begins, std::int64_t number) {
  std::size_t index = 0;
  while (!memory.seat(index).owner.try_take(sync::OwnerWord::kUnowned, memory.own_code())) ++index;
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
}

// Runs a process that does that, and is killed.
void let_one_die(const Rows<std::int64_t>& rows, bool begins, std::int64_t number) {
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    tables::Memory memory{sync::Descriptor(dup(rows.fd()))};
    leave_undone(memory, begins, number);
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

// One thread leaves a change undone while another starts a program in the place of this one. A child, forked after the
// table was mapped, outlives both.
template <class Exec>
[[noreturn]] void leave_undone_and_exec(const Rows<std::int64_t>& rows, bool by_first_thread, Exec&& exec) {
  tables::Memory memory{sync::Descriptor(dup(rows.fd()))};
  memory.own_code();
  const pid_t self = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == self) usleep(10'000);  // the signal is not sent if the thread that forked has ended before
    std::_Exit(0);
  }
  std::atomic<bool> is_undone{false};
  const auto write = [&] {
    leave_undone(memory, true, 100);
    is_undone = true;
    for (;;) pause();
  };
  const auto start = [&] {
    while (!is_undone) usleep(100);
    exec();
    check(false, "exec does not return");
  };
  const std::thread other = by_first_thread ? std::thread(start) : std::thread(write);
  by_first_thread ? write() : start();
  std::abort();
}

// The process goes on under the same number, and with the same start time.
void exec_ends_a_writer_as_its_death_does(bool by_first_thread) {
  const Rows<std::int64_t> rows(1, 1);
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    leave_undone_and_exec(rows, by_first_thread, [&] {
      processes.board().calls.fetch_add(1);
      execlp("sleep", "sleep", "1000", nullptr);
    });
  });
  while (processes.board().calls.load() == 0) usleep(100);
  Table table = rows.map(5s);
  rows.update(table, Change::kAdd, 1);
  check(rows.numbers(table).front() == 101, "what it left is complete");
  check(!sync::LivingProcess(processes.pid(0)).has_ended(), "the process lives");
  processes.kill(0);
  check(processes.wait_for(0) == -SIGKILL, "it was killed");
}

// The program that exec starts: adds one to the table of this descriptor.
int add_one(int fd) {
  const std::int64_t one = 1;
  Table(sync::Descriptor(fd), 5s).update(Change::kAdd, 0, std::as_bytes(std::span(&one, 1)), nullptr);
  return 0;
}

void a_program_puts_right_what_the_one_before_it_in_its_process_left() {
  const Rows<std::int64_t> rows(1, 1);
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    const std::string fd = std::to_string(dup(rows.fd()));
    leave_undone_and_exec(rows, true,
                          [&] { execl("/proc/self/exe", "table_stress", "--add-one", fd.c_str(), nullptr); });
  });
  check(processes.wait_for(0) == 0, "the second program ends well");
  Table table = rows.map();
  check(rows.numbers(table).front() == 101, "the change of the first is complete");
}

// Also while the parent lives, whose mapping it has inherited.
void a_forked_child_is_a_writer_of_its_own() {
  const Rows<std::int64_t> rows(1, 1);
  tables::Memory memory{sync::Descriptor(dup(rows.fd()))};
  const std::uint64_t code = memory.own_code();
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    check(memory.own_code() != code, "the child has another code");
    leave_undone(memory, true, 100);
    raise(SIGKILL);
  });
  check(processes.wait_for(0) == -SIGKILL, "it was killed");
  Table table = rows.map(5s);
  rows.update(table, Change::kAdd, 1);
  check(rows.numbers(table).front() == 101, "what the child left is complete");
  check(!sync::Incarnation::has_ended(rows.fd(), code), "the parent lives");
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
  if (argc == 3 && std::string(argv[1]) == "--add-one") return add_one(std::atoi(argv[2]));
  const std::size_t calls = stress::calls_of(argc, argv, 100'000);
  const std::size_t rounds = calls / 2500;
  // Processes first: this program starts no thread before it forks.
  whoever_comes_next_takes_the_chunks_and_seats_of_the_dead();
  one_alone_completes_what_was_begun(rounds / 4);
  the_dead_take_nothing_from_the_living();
  a_stopped_writer_is_named_and_goes_on();
  for (const bool by_first_thread : {false, true}) exec_ends_a_writer_as_its_death_does(by_first_thread);
  a_program_puts_right_what_the_one_before_it_in_its_process_left();
  a_forked_child_is_a_writer_of_its_own();
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
