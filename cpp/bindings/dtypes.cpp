#include "dtypes.hpp"

#include <array>
#include <string>

#include "registers.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/append_only.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using Api = py::detail::npy_api;

// NumPy's own types by number; types of packages have numbers that NumPy assigned at import.
constexpr int kNumBuiltin = 24;
constexpr int kNone = -1;

constexpr std::array<int, kNumBuiltin> builtin_dtypes() {
  std::array<int, kNumBuiltin> table{};
  table.fill(kNone);
  const auto set = [&](int number, core::DType dtype) {
    table[static_cast<std::size_t>(number)] = static_cast<int>(dtype);
  };
  const auto set_integers = [&](int is_signed, int is_unsigned, std::size_t bytes) {
    set(is_signed, bytes == 4 ? core::DType::kInt32 : core::DType::kInt64);
    set(is_unsigned, bytes == 4 ? core::DType::kUInt32 : core::DType::kUInt64);
  };
  set(Api::NPY_BOOL_, core::DType::kBool);
  set(Api::NPY_BYTE_, core::DType::kInt8);
  set(Api::NPY_UBYTE_, core::DType::kUInt8);
  set(Api::NPY_SHORT_, core::DType::kInt16);
  set(Api::NPY_USHORT_, core::DType::kUInt16);
  // C has more integer types than there are sizes.
  set_integers(Api::NPY_INT_, Api::NPY_UINT_, sizeof(int));
  set_integers(Api::NPY_LONG_, Api::NPY_ULONG_, sizeof(long));
  set_integers(Api::NPY_LONGLONG_, Api::NPY_ULONGLONG_, sizeof(long long));
  constexpr int kHalf = 23;  // a number that pybind11 does not name
  set(kHalf, core::DType::kFloat16);
  set(Api::NPY_FLOAT_, core::DType::kFloat32);
  set(Api::NPY_DOUBLE_, core::DType::kFloat64);
  set(Api::NPY_CFLOAT_, core::DType::kComplex64);
  set(Api::NPY_CDOUBLE_, core::DType::kComplex128);
  return table;
}

constexpr std::array<int, kNumBuiltin> kBuiltin = builtin_dtypes();

// Descriptors of the dtypes of ml_dtypes that were passed or received; kept for ever, like the types.
constinit std::array<sync::Pointer<PyObject>, core::kNumDTypes> registered;

constexpr int number_of(core::DType dtype) {
  constexpr std::array<int, 15> kNumbers = {
      Api::NPY_BOOL_,  Api::NPY_INT8_,   Api::NPY_INT16_,  Api::NPY_INT32_,  Api::NPY_INT64_,
      Api::NPY_UINT8_, Api::NPY_UINT16_, Api::NPY_UINT32_, Api::NPY_UINT64_, 23,
      kNone,           Api::NPY_FLOAT_,  Api::NPY_DOUBLE_, Api::NPY_CFLOAT_, Api::NPY_CDOUBLE_};
  const std::size_t index = core::index_of(dtype);
  return index < kNumbers.size() ? kNumbers[index] : kNone;
}

void register_dtype(const std::string& name, const py::dtype& dtype) {
  for (std::size_t index = 0; index < core::kNumDTypes; ++index) {
    const auto known = static_cast<core::DType>(index);
    if (core::name_of(known) != name || number_of(known) != kNone) continue;
    if (static_cast<std::size_t>(dtype.itemsize()) != core::size_of(known)) break;
    registered[index].set(dtype.inc_ref().ptr());  // another thread may still use the previous object
    return;
  }
  throw core::ArgumentError("no dtype of a supported package has the name " + name + ".");
}

}  // namespace

std::optional<core::DType> find_dtype(const py::dtype& dtype) {
  const int number = dtype.num();
  if (number >= 0 && number < kNumBuiltin) {
    const int found = kBuiltin[static_cast<std::size_t>(number)];
    const char order = dtype.byteorder();
    if (found == kNone || (order != '=' && order != '|')) return std::nullopt;
    return static_cast<core::DType>(found);
  }
  for (std::size_t index = 0; index < core::kNumDTypes; ++index) {
    PyObject* const known = registered[index].get();
    if (known != nullptr && py::reinterpret_borrow<py::dtype>(known).num() == number) {
      return static_cast<core::DType>(index);
    }
  }
  return std::nullopt;
}

PyObject* descriptor_of(core::DType dtype) {
  if (const int number = number_of(dtype); number != kNone) return Api::get().PyArray_DescrFromType_(number);
  PyObject* known = registered[core::index_of(dtype)].get();
  if (known == nullptr) {  // this process has not passed such an array yet, but receives one
    const std::string name(core::name_of(dtype));
    try {
      known = py::dtype::from_args(py::module_::import("ml_dtypes").attr(name.c_str())).release().ptr();
      registered[core::index_of(dtype)].set(known);
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      throw core::ArgumentError("another rank sent " + name +
                                ", a dtype of the package ml_dtypes, which this process " +
                                "cannot import: pip install ml_dtypes.");
    }
  }
  return py::reinterpret_borrow<py::object>(known).release().ptr();
}

void register_dtypes(py::module_& m) { m.def("register_dtype", register_dtype, "name"_a, "dtype"_a); }

}  // namespace ringlet::bindings
