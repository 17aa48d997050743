#include "arrays.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "ringlet/core/error.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

namespace {

using Api = py::detail::npy_api;

static_assert(sizeof(Py_intptr_t) == sizeof(std::int64_t), "shapes are passed as they are");

std::string text_of(const py::handle& object) { return py::cast<std::string>(py::str(object)); }

bool is_usable(const py::array& array) {
  constexpr int kWanted = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;
  return (array.flags() & kWanted) == kWanted;
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
  PyObject* const made =
      api.PyArray_NewFromDescr_(api.PyArray_Type_, descriptor, static_cast<int>(shape.size()), dims, steps, data, flags,
                                nullptr);
  if (made == nullptr) throw py::error_already_set();
  auto array = py::reinterpret_steal<py::object>(made);
  if (api.PyArray_SetBaseObject_(made, owner.release().ptr()) != 0) throw py::error_already_set();
  return array;
}

}  // namespace

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
  throw core::ArgumentError("cannot reduce an array of dtype " + text_of(dtype) +
                            ": collectives take float32, float64, int32 and int64. Convert it first, for example with "
                            "x.astype('float32').");
}

collectives::Part part_of(const py::array& input) {
  const core::DType dtype = dtype_of(input);
  if (!is_usable(input)) throw core::ArgumentError("the array is not contiguous and aligned; copy it first.");
  const auto* const dims = reinterpret_cast<const std::int64_t*>(input.shape());
  return {.input = input.data(),
          .count = static_cast<std::size_t>(input.size()),
          .dtype = dtype,
          .shape = {dims, static_cast<std::size_t>(input.ndim())}};
}

void* output_for(const py::array& output, const collectives::Part& part, core::DType result) {
  const auto* const dims = reinterpret_cast<const std::int64_t*>(output.shape());
  const std::span<const std::int64_t> shape(dims, static_cast<std::size_t>(output.ndim()));
  if (!output.writeable() || !is_usable(output) || dtype_of(output) != result ||
      !std::equal(shape.begin(), shape.end(), part.shape.begin(), part.shape.end())) {
    throw core::ArgumentError("out must be a writeable, contiguous, aligned array of the result's shape and dtype.");
  }
  return const_cast<void*>(output.data());
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
