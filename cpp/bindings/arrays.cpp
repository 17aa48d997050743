#include "arrays.hpp"

#include <algorithm>
#include <memory>
#include <utility>

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
  // A subclass may mean more than its memory does.
  if (Py_TYPE(object.ptr()) != Api::get().PyArray_Type_) throw Unusable();
  auto array = py::reinterpret_borrow<py::array>(object);
  if (!is_plain(array)) throw Unusable();
  return array;
}

core::DType dtype_of(const py::array& array) {
  const py::dtype dtype = array.dtype();
  const char kind = dtype.kind();
  const auto size = dtype.itemsize();
  const char order = dtype.byteorder();
  if (order == '=' || order == '|') {
    if (kind == 'f' && size == 4) return core::DType::kFloat32;
    if (kind == 'f' && size == 8) return core::DType::kFloat64;
    if (kind == 'i' && size == 4) return core::DType::kInt32;
    if (kind == 'i' && size == 8) return core::DType::kInt64;
  }
  throw Unusable();
}

bool is_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(one);
  const auto second = reinterpret_cast<std::uintptr_t>(other);
  return first + one_bytes <= second || second + other_bytes <= first;
}

int type_number(core::DType dtype) {
  constexpr int kNumbers[core::kNumDTypes] = {Api::NPY_FLOAT_, Api::NPY_DOUBLE_, Api::NPY_INT32_, Api::NPY_INT64_};
  return kNumbers[static_cast<std::size_t>(dtype)];
}

void release_block(PyObject* capsule) {
  const std::unique_ptr<memory::Block> last(static_cast<memory::Block*>(PyCapsule_GetPointer(capsule, nullptr)));
}

py::object owner_of(memory::Block block) {
  auto held = std::make_unique<memory::Block>(std::move(block));
  PyObject* const capsule = PyCapsule_New(held.get(), nullptr, release_block);
  if (capsule == nullptr) throw py::error_already_set();
  held.release();  // the capsule has it now
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

collectives::Part part_of(py::handle input) {
  const py::array array = array_of(input);
  const auto* const dims = reinterpret_cast<const std::int64_t*>(array.shape());
  return {.input = array.data(),
          .count = static_cast<std::size_t>(array.size()),
          .dtype = dtype_of(array),
          .shape = {dims, static_cast<std::size_t>(array.ndim())}};
}

void* output_for(py::handle output, const collectives::Part& part, core::DType result) {
  const py::array array = array_of(output);
  const auto* const dims = reinterpret_cast<const std::int64_t*>(array.shape());
  const std::span<const std::int64_t> shape(dims, static_cast<std::size_t>(array.ndim()));
  void* const data = const_cast<void*>(array.data());
  const std::size_t bytes = part.count * core::size_of(result);
  const bool is_in_place = data == part.input && bytes == part.input_bytes();
  if (!array.writeable() || dtype_of(array) != result ||
      !std::equal(shape.begin(), shape.end(), part.shape.begin(), part.shape.end()) ||
      !(is_in_place || is_apart(data, bytes, part.input, part.input_bytes()))) {
    throw Unusable();
  }
  return data;
}

py::object array_on(memory::Block block, core::DType dtype, std::span<const std::int64_t> shape) {
  void* const data = block->data();
  py::object owner = owner_of(std::move(block));
  PyObject* const descriptor = Api::get().PyArray_DescrFromType_(type_number(dtype));
  return new_array(descriptor, shape, nullptr, data, 0, std::move(owner));
}

py::object view_of(const py::array& parent, std::span<const std::int64_t> shape, const std::int64_t* strides,
                   std::int64_t offset_bytes) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(parent.data())) + offset_bytes;
  const int flags = parent.flags() & Api::NPY_ARRAY_WRITEABLE_;
  return new_array(parent.dtype().release().ptr(), shape, strides, data, flags, parent);
}

}  // namespace ringlet::bindings
