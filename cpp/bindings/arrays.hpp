// Access to NumPy arrays by the C interface, for speed.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <exception>
#include <span>
#include <utility>

#include "ringlet/collectives/call/call.hpp"
#include "ringlet/core/dtype.hpp"
#include "ringlet/memory/pool.hpp"

namespace ringlet::bindings {

// Thrown for an argument that is not an array that the core can use directly. The Python layer then converts it or
// raises an error.
class Unusable : public std::exception {
 public:
  const char* what() const noexcept override { return "not an array that the core can work on"; }
};

// A buffer over the memory of `input`: an array of a supported dtype, contiguous, aligned, in native byte order. The
// buffer points into the array object, which must stay alive.
collectives::Buffer buffer_of(pybind11::handle input);

// The same for a writeable array.
collectives::Buffer writeable_buffer_of(pybind11::handle output);

// Whether two memory ranges share no byte.
bool is_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes);

// The memory of an output for `buffer`: with the same requirements, writeable, of the result's shape and dtype, and
// either the input itself or disjoint from it.
void* output_for(pybind11::handle output, const collectives::Buffer& buffer, core::DType result);

// Whether an array still has the memory that it had when `data` and `count` were taken from it.
bool has_memory(pybind11::handle array, const void* data, std::size_t count);
// The same, and whether it is still writeable.
bool has_writeable_memory(pybind11::handle array, const void* data, std::size_t count);

// A read-only array on a block. NumPy refuses to make it writeable, because its owner is not an array.
pybind11::object array_on(memory::Block block, core::DType dtype, std::span<const std::int64_t> shape);

// Two arrays on a block: one to write to and one that NumPy refuses to make writeable. Each array alone keeps the block
// alive. The dtype holds no objects.
std::pair<pybind11::object, pybind11::object> arrays_on(memory::Block block, const pybind11::dtype& dtype,
                                                        std::span<const std::int64_t> shape);

// A view of `parent` at `offset_bytes` from its first element.
pybind11::object view_of(const pybind11::array& parent, std::span<const std::int64_t> shape,
                         const std::int64_t* strides, std::int64_t offset_bytes);

}  // namespace ringlet::bindings
