#include "arguments.hpp"

#include <utility>

#include "ringlet/core/error.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

namespace {

// Tuples, so that no other thread can remove an array during the call.
py::tuple tuple_of(const py::object& arrays) {
  if (arrays.is_none()) return py::tuple();
  if (!py::isinstance<py::sequence>(arrays)) throw Unusable();
  return py::tuple(arrays);
}

// Whether an object is a Python or NumPy number, which counts as an array without dimensions.
bool is_scalar(PyObject* object) {
  static PyObject* const generic = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
         PyComplex_CheckExact(object) || PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(generic));
}

// The arrays as a tuple, with every number replaced by an array.
py::tuple arrays_of(const py::object& given) {
  py::tuple arrays = tuple_of(given);
  const std::size_t size = arrays.size();
  for (std::size_t i = 0; i < size; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(arrays.ptr(), static_cast<Py_ssize_t>(i));
    if (!is_scalar(item)) continue;
    if (arrays.ptr() == given.ptr()) arrays = py::tuple(py::list(given));  // the caller's tuple stays as it is
    const auto array = py::array::ensure(py::reinterpret_borrow<py::object>(item));
    if (!array) throw Unusable();
    arrays[i] = array;
  }
  return arrays;
}

}  // namespace

Arguments::Arguments(const py::object& arrays, const py::object& outs, const core::Op* op)
    : arrays_(arrays_of(arrays)), outputs_(tuple_of(outs)) {
  buffers_.reserve(arrays_.size());
  std::size_t num_dims = 0;
  for (const py::handle array : arrays_) {
    buffers_.push_back(buffer_of(array));
    num_dims += buffers_.back().shape.size();
  }
  // Another thread may assign to an array's shape while the call runs without the interpreter.
  dims_.reserve(num_dims);
  for (collectives::Buffer& buffer : buffers_) {
    const std::size_t first = dims_.size();
    dims_.insert(dims_.end(), buffer.shape.begin(), buffer.shape.end());
    buffer.shape = std::span<const std::int64_t>(dims_).subspan(first);
  }
  if (outs.is_none()) return;
  if (outputs_.size() != buffers_.size()) throw Unusable();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const core::DType result = op == nullptr ? buffers_[i].dtype : core::result_dtype(*op, buffers_[i].dtype);
    buffers_[i].output = output_for(outputs_[i], buffers_[i], result);
  }
}

void Arguments::check_memory() const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const collectives::Buffer& buffer = buffers_[i];
    const bool is_same = has_memory(arrays_[i], buffer.input, buffer.count) &&
                         (buffer.output == nullptr || has_writeable_memory(outputs_[i], buffer.output, buffer.count));
    if (!is_same) throw_changed();
  }
}

void throw_changed() {
  throw core::ArgumentError(
      "the memory of an array of a plan was replaced, or an out made read-only, after the plan was made: make a new "
      "plan.");
}

Argument::Argument(py::object array) : array_(std::move(array)) {
  buffer_ = buffer_of(array_);
  dims_.assign(buffer_.shape.begin(), buffer_.shape.end());
  buffer_.shape = dims_;
}

void Argument::set_output(py::object out, core::DType dtype, std::span<const std::int64_t> shape, std::size_t free_dim,
                          std::ptrdiff_t inside, std::ptrdiff_t around) {
  out_ = std::move(out);
  if (out_.is_none()) return;
  const collectives::Buffer given = writeable_buffer_of(out_);
  bool fits = given.dtype == dtype && given.shape.size() == shape.size();
  for (std::size_t dim = 0; fits && dim < shape.size(); ++dim) {
    fits = dim == free_dim || given.shape[dim] == shape[dim];
  }
  if (!fits) throw Unusable();
  const auto* const input = static_cast<const std::byte*>(buffer_.input);
  const auto* const output = static_cast<const std::byte*>(given.input);
  const bool is_in_place =
      (inside != kApart && output == input + inside) || (around != kApart && input == output + around);
  if (!is_in_place && !is_apart(input, buffer_.input_bytes(), output, given.input_bytes())) throw Unusable();
  buffer_.output = const_cast<void*>(given.input);
  if (free_dim != kNoDim) buffer_.output_length = given.shape[free_dim];
}

Argument Argument::described_by(py::object out) {
  Argument argument;
  argument.array_ = py::none();
  argument.out_ = std::move(out);
  if (argument.out_.is_none()) return argument;
  collectives::Buffer& buffer = argument.buffer_;
  buffer = writeable_buffer_of(argument.out_);
  if (buffer.shape.empty()) throw Unusable();
  argument.dims_.assign(buffer.shape.begin(), buffer.shape.end());
  buffer.shape = argument.dims_;
  buffer.output = const_cast<void*>(std::exchange(buffer.input, nullptr));
  buffer.output_length = argument.dims_.front();
  return argument;
}

std::vector<std::int64_t> Argument::shape_with(std::size_t dim, std::int64_t length) const {
  std::vector<std::int64_t> shape = dims_;
  shape[dim] = length;
  return shape;
}

py::object Argument::take(collectives::Results results, core::DType dtype, std::span<const std::int64_t> shape) const {
  if (results.empty()) return out_;
  return array_on(std::move(results.front()), dtype, shape);
}

}  // namespace ringlet::bindings
