// NumPy arrays at the speed of its C interface.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <span>

#include "ringlet/collectives/call.hpp"
#include "ringlet/core/dtype.hpp"
#include "ringlet/memory/pool.hpp"

namespace ringlet::bindings {

// The element type, or ArgumentError.
core::DType dtype_of(const pybind11::array& array);

// A part over the memory of `input`, which must be contiguous, aligned and in native byte order (ArgumentError else).
// The part points into the array object: keep it alive.
collectives::Part part_of(const pybind11::array& input);

// The memory of an output for `part`; the same demands, and it must be writeable and of the result's shape and dtype.
void* output_for(const pybind11::array& output, const collectives::Part& part, core::DType result);

// A read-only array on a block. NumPy refuses to make it writeable, because its owner is no array.
pybind11::object array_on(memory::Block block, core::DType dtype, std::span<const std::int64_t> shape);

// A view of `parent` at `offset_bytes` from its first element.
pybind11::object view_of(const pybind11::array& parent, std::span<const std::int64_t> shape, const std::int64_t* strides,
                         std::int64_t offset_bytes);

}  // namespace ringlet::bindings
