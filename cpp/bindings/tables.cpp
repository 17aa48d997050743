#include "ringlet/tables/table.hpp"

#include <fcntl.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dtypes.hpp"
#include "interpreter.hpp"
#include "registers.hpp"
#include "ringlet/core/describe.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using Api = py::detail::npy_api;
using tables::Table;
using Shape = std::vector<std::int64_t>;

core::DType dtype_of(const py::dtype& given) {
  if (const auto dtype = find_dtype(given)) return *dtype;
  throw core::ArgumentError("a table cannot hold elements of " + py::str(given).cast<std::string>() +
                            ": use numbers or bool, in the byte order of this machine.");
}

tables::Change change_of(int number) {
  if (number >= 0 && static_cast<std::size_t>(number) < tables::kNumChanges) return static_cast<tables::Change>(number);
  throw core::ArgumentError("unknown number of a change of a table: " + std::to_string(number) + ".");
}

Shape shape_of(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

// `rows`, then the table's dimensions after the first.
Shape shape_of_rows(const Table& table, Shape rows) {
  const Shape& shape = table.layout().shape;
  if (!shape.empty()) rows.insert(rows.end(), shape.begin() + 1, shape.end());
  return rows;
}

Shape shape_of_range(const Table& table, std::size_t num_rows) {
  if (table.layout().shape.empty()) return {};
  return shape_of_rows(table, {static_cast<std::int64_t>(num_rows)});
}

void check_fits(const py::array& array, core::DType dtype, const Shape& shape, const char* name) {
  const auto given = find_dtype(array.dtype());
  const Shape given_shape = shape_of(array);
  if (given == dtype && given_shape == shape) return;
  const std::string text =
      given ? core::describe(*given, given_shape) : "an array of " + py::str(array.dtype()).cast<std::string>();
  throw core::ArgumentError(std::string(name) + " must be " + core::describe(dtype, shape) + ", not " + text + ".");
}

constexpr int kPlain = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;

// The array itself if it is C-contiguous, else a copy.
py::array contiguous(const py::array& array) {
  py::array plain = py::array::ensure(array, kPlain);
  if (!plain) throw py::error_already_set();
  return plain;
}

std::byte* memory_of_out(py::array& out) {
  if ((out.flags() & kPlain) == kPlain && out.writeable()) return static_cast<std::byte*>(out.mutable_data());
  throw core::ArgumentError("out must be writeable and C-contiguous: see out.flags.");
}

// Requires the interpreter lock: the size of an element is read from its dtype, a Python object.
template <class T = std::byte>
std::span<const T> elements_of(const py::array& array) {
  return {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.nbytes()) / sizeof(T)};
}

void check_range(const Table& table, std::size_t begin, std::size_t end) {
  const std::size_t num_rows = table.layout().num_rows;
  if (begin <= end && end <= num_rows) return;
  throw core::ArgumentError("rows " + std::to_string(begin) + " to " + std::to_string(end) + " are not within the " +
                            std::to_string(num_rows) + " rows of a table of " + table.layout().describe() + ".");
}

// Fills `out`, or a new array, by `read(bytes)`.
template <class Read>
py::object filled(const Table& table, const Shape& shape, std::optional<py::array> out, Read&& read) {
  const core::DType dtype = table.layout().dtype;
  std::size_t bytes = core::size_of(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  if (out) {
    check_fits(*out, dtype, shape, "out");
    std::byte* const data = memory_of_out(*out);
    without_interpreter([&] { read(std::span(data, bytes)); });
    return *out;
  }
  memory::Block block = memory::result_pool().allocate(std::max<std::size_t>(bytes, 1));
  without_interpreter([&] { read(std::span(static_cast<std::byte*>(block->data()), bytes)); });
  return array_on(std::move(block), dtype, shape);
}

std::unique_ptr<Table> map_table(int fd, double timeout_seconds) {
  sync::Descriptor own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) throw std::system_error(errno, std::generic_category(), "dup of descriptor " + std::to_string(fd));
  std::unique_ptr<Table> table;
  without_interpreter([&] { table = std::make_unique<Table>(std::move(own), timeout_of(timeout_seconds)); });
  return table;
}

int create_table(const Shape& shape, const py::dtype& dtype) {
  const tables::Layout layout(shape, dtype_of(dtype));
  int fd = -1;
  without_interpreter([&] { fd = tables::Memory::create(layout).release(); });
  return fd;
}

py::object read(Table& table, std::size_t begin, std::optional<std::size_t> end, std::optional<py::array> out) {
  const std::size_t last = end.value_or(table.layout().num_rows);
  check_range(table, begin, last);
  sync::Poll* const poll = signal_poll();
  return filled(table, shape_of_range(table, last - begin), std::move(out),
                [&](std::span<std::byte> rows) { table.read(begin, rows, poll); });
}

void update(Table& table, int op, const py::array& value, std::size_t begin) {
  const std::size_t num_rows = value.ndim() == 0 ? 1 : static_cast<std::size_t>(value.shape(0));
  check_fits(value, table.layout().dtype, shape_of_range(table, num_rows), "value");
  check_range(table, begin, begin + num_rows);
  const py::array plain = contiguous(value);
  const auto rows = elements_of(plain);
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { table.update(change_of(op), begin, rows, poll); });
}

py::object gather(Table& table, const py::array& indices, std::optional<py::array> out) {
  check_fits(indices, core::DType::kInt64, shape_of(indices), "indices");
  const py::array plain = contiguous(indices);
  const auto numbers = elements_of<std::int64_t>(plain);
  sync::Poll* const poll = signal_poll();
  return filled(table, shape_of_rows(table, shape_of(indices)), out,
                [&](std::span<std::byte> rows) { table.gather(numbers, rows, poll); });
}

void scatter(Table& table, int op, const py::array& indices, const py::array& values) {
  check_fits(indices, core::DType::kInt64, shape_of(indices), "indices");
  check_fits(values, table.layout().dtype, shape_of_rows(table, shape_of(indices)), "values");
  const py::array plain_indices = contiguous(indices);
  const py::array plain_values = contiguous(values);
  const auto numbers = elements_of<std::int64_t>(plain_indices);
  const auto rows = elements_of(plain_values);
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { table.scatter(change_of(op), numbers, rows, poll); });
}

}  // namespace

void register_tables(py::module_& m) {
  py::class_<Table>(m, "Table")
      .def(py::init(&map_table), "fd"_a, "timeout_seconds"_a = 60.0)
      .def_static("create", create_table, "shape"_a, "dtype"_a)
      .def_property_readonly("shape", [](const Table& table) { return py::tuple(py::cast(table.layout().shape)); })
      .def_property_readonly(
          "dtype",
          [](const Table& table) { return py::reinterpret_steal<py::dtype>(descriptor_of(table.layout().dtype)); })
      .def_property_readonly("nbytes", [](const Table& table) { return table.layout().array_bytes(); })
      .def("fileno", &Table::fd)
      .def("version", &Table::version)
      .def("read", read, "begin"_a = 0, "end"_a = py::none(), "out"_a = py::none())
      .def("update", update, "op"_a, "value"_a, "begin"_a = 0)
      .def("gather", gather, "indices"_a, "out"_a = py::none())
      .def("scatter", scatter, "op"_a, "indices"_a, "values"_a);
}

}  // namespace ringlet::bindings
