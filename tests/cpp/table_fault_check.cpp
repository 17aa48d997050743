// Ends a writer of a table at every single store of the protocol, one after the other, and then, in the same way, the
// one that puts right what the first one left: every row is old or new. In builds with RINGLET_FAULT.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "check.hpp"
#include "processes.hpp"
#include "table_writers.hpp"

namespace {

using namespace ringlet;
using stress::check;
using stress::Processes;
using stress::Rows;
using tables::Change;
using tables::Table;

constexpr std::size_t kNumRows = 3;

// Runs `body` in a process that is ended at its store number `fault`; false if it lives through.
template <class Body>
bool ends_at(std::uint64_t fault, Body&& body) {
  Processes processes({.ranks = {1}});
  processes.start([&](int) {
    setenv("RINGLET_FAULT", std::to_string(fault).c_str(), 1);
    body();
  });
  const int status = processes.wait_for(0);
  check(status == 0 || status == -SIGKILL, "it ends as it shall");
  return status != 0;
}

void add_twice(const Rows<std::int64_t>& rows) {
  Table table = rows.map();
  rows.update(table, Change::kAdd, 1);
  for (std::size_t row = 0; row < kNumRows; ++row) rows.scatter(table, Change::kAdd, row, 1);
}

void check_rows(const Rows<std::int64_t>& rows, std::int64_t least, std::int64_t most) {
  Processes looker({.ranks = {1}});  // this process never passes a store, or its children would count on from there
  looker.start([&](int) {
    Table table = rows.map();
    rows.update(table, Change::kAdd, 0);
    for (const std::int64_t number : rows.numbers(table)) {
      check(number >= least && number <= most, "no row has lost or gained: " + std::to_string(number));
    }
  });
  check(looker.wait_for(0) == 0, "others go on");
}

// False once the first writer lives through.
bool run(std::size_t row_count, std::uint64_t first, std::uint64_t second) {
  const Rows<std::int64_t> rows(kNumRows, row_count);
  const bool is_first_ended = ends_at(first, [&] { add_twice(rows); });
  const bool is_second_ended = ends_at(second, [&] { add_twice(rows); });
  check_rows(rows, (is_first_ended ? 0 : 2) + (is_second_ended ? 0 : 2), 4);
  return is_first_ended;
}

// Rows that are long are chunks of their own. Most of their stores are words of the chunk: few of those are tried.
std::uint64_t end_at_each_store(std::size_t row_count, std::uint64_t step) {
  constexpr std::uint64_t kMostOfSecond = 40;  // by then it has put right what there was
  const std::uint64_t stores_of_change = row_count + 5;
  std::uint64_t ended = 0;
  for (std::uint64_t first = 1;; first += step) {
    const std::uint64_t place = first % stores_of_change;
    if (row_count > 100 && place > 8 && place + 8 < stores_of_change) continue;
    for (std::uint64_t second = 1 + first % 3; second < kMostOfSecond; second += 3) {
      if (!run(row_count, first, second)) return ended;
    }
    ++ended;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t step = argc > 1 && std::strtoull(argv[1], nullptr, 10) < 10'000 ? 7 : 1;
  const std::uint64_t ended = end_at_each_store(5, step) + end_at_each_store(600, step);
  std::cout << "ended at " << ended << " stores" << std::endl;
}
