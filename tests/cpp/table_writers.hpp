// Tables whose rows hold one number each, in every element: a row that somebody saw half written shows.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "ringlet/tables/table.hpp"

namespace ringlet::stress {

template <class T>
constexpr core::DType kDTypeOf = sizeof(T) == 1 ? core::DType::kUInt8 : core::DType::kInt64;

// Of a table of T (std::uint8_t or std::int64_t), which the parent makes and children inherit.
template <class T>
class Rows {
 public:
  Rows(std::size_t num_rows, std::size_t row_count)
      : row_count_(row_count),
        fd_(tables::Memory::create({std::vector{as_size(num_rows), as_size(row_count)}, kDTypeOf<T>})) {}

  int fd() const { return fd_.get(); }
  tables::Table map(std::chrono::milliseconds timeout = std::chrono::seconds(30)) const {
    return {sync::Descriptor(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)), timeout};
  }

  // One row with one number.
  void scatter(tables::Table& table, tables::Change change, std::size_t row, T number) const {
    const std::int64_t index = as_size(row);
    const std::vector<T> values(row_count_, number);
    table.scatter(change, {&index, 1}, std::as_bytes(std::span(values)), nullptr);
  }
  // All rows with one number.
  void update(tables::Table& table, tables::Change change, T number) const {
    const std::vector<T> values(table.layout().num_rows * row_count_, number);
    table.update(change, 0, std::as_bytes(std::span(values)), nullptr);
  }
  // The number that each row holds.
  std::vector<T> numbers(tables::Table& table) const {
    std::vector<T> values(table.layout().num_rows * row_count_);
    table.read(0, std::as_writable_bytes(std::span(values)), nullptr);
    std::vector<T> numbers;
    for (std::size_t at = 0; at < values.size(); at += row_count_) {
      for (std::size_t i = 1; i < row_count_; ++i) check(values[at + i] == values[at], "no row is half written");
      numbers.push_back(values[at]);
    }
    return numbers;
  }

 private:
  static std::int64_t as_size(std::size_t number) { return static_cast<std::int64_t>(number); }

  std::size_t row_count_;
  sync::Descriptor fd_;
};

}  // namespace ringlet::stress
