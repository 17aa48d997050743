#include "arrays.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "dtypes.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

namespace {

using Api = py::detail::npy_api;

static_assert(sizeof(Py_intptr_t) == sizeof(std::int64_t), "shapes are passed as they are");

bool is_plain(const py::array& array) {
  constexpr int kWanted = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;
  return (array.flags() & kWanted) == kWanted;
}

py::array array_of(py::handle object) {
  // A subclass may have contents outside of its memory, such as a mask.
  if (Py_TYPE(object.ptr()) != Api::get().PyArray_Type_) throw Unusable();
  auto array = py::reinterpret_borrow<py::array>(object);
  if (!is_plain(array)) throw Unusable();
  return array;
}

core::DType dtype_of(const py::array& array) {
  const auto dtype = find_dtype(array.dtype());
  if (!dtype.has_value()) throw Unusable();
  return *dtype;
}

void release_block(PyObject* capsule) {
  const std::unique_ptr<memory::Block> last(static_cast<memory::Block*>(PyCapsule_GetPointer(capsule, nullptr)));
}

py::object owner_of(memory::Block block) {
  auto held = std::make_unique<memory::Block>(std::move(block));
  PyObject* const capsule = PyCapsule_New(held.get(), nullptr, release_block);
  if (capsule == nullptr) throw py::error_already_set();
  held.release();  // now owned by the capsule
  return py::reinterpret_steal<py::object>(capsule);
}

// Steals `descriptor`.
py::object new_array(PyObject* descriptor, std::span<const std::int64_t> shape, const std::int64_t* strides, void* data,
                     int flags, py::object owner) {
  Api& api = Api::get();
  const auto* const dims = reinterpret_cast<const Py_intptr_t*>(shape.data());
  const auto* const steps = reinterpret_cast<const Py_intptr_t*>(strides);
  PyObject* const made = api.PyArray_NewFromDescr_(api.PyArray_Type_, descriptor, static_cast<int>(shape.size()), dims,
                                                   steps, data, flags, nullptr);
  if (made == nullptr) throw py::error_already_set();
  auto array = py::reinterpret_steal<py::object>(made);
  if (api.PyArray_SetBaseObject_(made, owner.release().ptr()) != 0) throw py::error_already_set();
  return array;
}

}  // namespace

bool is_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(one);
  const auto second = reinterpret_cast<std::uintptr_t>(other);
  return one_bytes == 0 || other_bytes == 0 || first + one_bytes <= second || second + other_bytes <= first;
}

collectives::Buffer buffer_of(py::handle input) {
  const py::array array = array_of(input);
  const auto* const dims = reinterpret_cast<const std::int64_t*>(array.shape());
  return {.input = array.data(),
          .count = static_cast<std::size_t>(array.size()),
          .dtype = dtype_of(array),
          .shape = {dims, static_cast<std::size_t>(array.ndim())}};
}

collectives::Buffer writeable_buffer_of(py::handle output) {
  if (!array_of(output).writeable()) throw Unusable();
  return buffer_of(output);
}

void* output_for(py::handle output, const collectives::Buffer& buffer, core::DType result) {
  const collectives::Buffer given = writeable_buffer_of(output);
  const bool is_in_place = given.input == buffer.input && given.input_bytes() == buffer.input_bytes();
  if (given.dtype != result ||
      !std::equal(given.shape.begin(), given.shape.end(), buffer.shape.begin(), buffer.shape.end()) ||
      !(is_in_place || is_apart(given.input, given.input_bytes(), buffer.input, buffer.input_bytes()))) {
    throw Unusable();
  }
  return const_cast<void*>(given.input);
}

bool has_memory(py::handle array, const void* data, std::size_t count) {
  const auto same = py::reinterpret_borrow<py::array>(array);
  return same.data() == data && static_cast<std::size_t>(same.size()) == count;
}

bool has_writeable_memory(py::handle array, const void* data, std::size_t count) {
  return has_memory(array, data, count) && py::reinterpret_borrow<py::array>(array).writeable();
}

py::object array_on(memory::Block block, core::DType dtype, std::span<const std::int64_t> shape) {
  std::size_t bytes = core::size_of(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  if (bytes > block->size()) throw std::logic_error("a rank was driven by two threads at the same time.");
  void* const data = block->data();
  py::object owner = owner_of(std::move(block));
  return new_array(descriptor_of(dtype), shape, nullptr, data, 0, std::move(owner));
}

std::pair<py::object, py::object> arrays_on(memory::Block block, const py::dtype& dtype,
                                            std::span<const std::int64_t> shape) {
  void* const data = block->data();
  const auto make = [&](int flags) {
    return new_array(py::object(dtype).release().ptr(), shape, nullptr, data, flags, owner_of(block));
  };
  py::object writeable = make(Api::NPY_ARRAY_WRITEABLE_);
  return {std::move(writeable), make(0)};
}

py::object view_of(const py::array& parent, std::span<const std::int64_t> shape, const std::int64_t* strides,
                   std::int64_t offset_bytes) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(parent.data())) + offset_bytes;
  const int flags = parent.flags() & Api::NPY_ARRAY_WRITEABLE_;
  return new_array(parent.dtype().release().ptr(), shape, strides, data, flags, parent);
}

}  // namespace ringlet::bindings
