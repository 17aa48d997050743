// Conversion between NumPy's dtypes and the core's.
#pragma once

#include <pybind11/numpy.h>

#include <optional>

#include "ringlet/core/dtype.hpp"

namespace ringlet::bindings {

// Empty for dtypes unknown to the core or in foreign byte order.
std::optional<core::DType> find_dtype(const pybind11::dtype& dtype);

// The descriptor of a dtype, a new reference.
PyObject* descriptor_of(core::DType dtype);

}  // namespace ringlet::bindings
