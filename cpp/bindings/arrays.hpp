// NumPy arrays at the speed of its C interface.
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

// An argument is not an array that the core can work on as it is. The Python layer then makes one, or says what is
// wrong.
class Unusable : public std::exception {
 public:
  const char* what() const noexcept override { return "not an array that the core can work on"; }
};

// A part over the memory of `input`: an array of a supported dtype, contiguous, aligned, in native byte order. The part
// points into the array object: keep it alive.
collectives::Buffer buffer_of(pybind11::handle input);

// The same of an array that may be written.
collectives::Buffer writeable_buffer_of(pybind11::handle output);

// Whether two stretches of memory share no byte.
bool is_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes);

// The memory of an output for `part`: the same demands; writeable, of the result's shape and dtype, and either the
// input itself or apart from it.
void* output_for(pybind11::handle output, const collectives::Buffer& buffer, core::DType result);

// Whether an array still has the memory that it had when `data` and `count` were taken from it.
bool has_memory(pybind11::handle array, const void* data, std::size_t count);
// The same, and may still be written.
bool has_writeable_memory(pybind11::handle array, const void* data, std::size_t count);

// A read-only array on a block. NumPy refuses to make it writeable, because its owner is not an array.
pybind11::object array_on(memory::Block block, core::DType dtype, std::span<const std::int64_t> shape);

// Two arrays on a block: one to write to and one that NumPy refuses to make writeable. Each keeps the block alive and
// knows nothing of the other. The dtype holds no objects.
std::pair<pybind11::object, pybind11::object> arrays_on(memory::Block block, const pybind11::dtype& dtype,
                                                        std::span<const std::int64_t> shape);

// A view of `parent` at `offset_bytes` from its first element.
pybind11::object view_of(const pybind11::array& parent, std::span<const std::int64_t> shape,
                         const std::int64_t* strides, std::int64_t offset_bytes);

}  // namespace ringlet::bindings
