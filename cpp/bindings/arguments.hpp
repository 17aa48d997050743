// Conversion of the arrays of one call between Python and the core.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arrays.hpp"
#include "ringlet/collectives/group/member.hpp"

namespace ringlet::bindings {

// Arrays, and outputs of their shapes, kept alive while a call runs and described for the core.
class Arguments {
 public:
  // Either may be None. `op` determines the dtypes of outputs; if null, they are the dtypes of the arrays.
  Arguments(const pybind11::object& arrays, const pybind11::object& outs, const core::Op* op);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  const std::vector<collectives::Buffer>& buffers() const noexcept { return buffers_; }
  pybind11::list outputs() const { return pybind11::list(outputs_); }
  // Throws ArgumentError if the memory of an array was replaced, or an output made read-only, since construction.
  void check_memory() const;

 private:
  pybind11::tuple arrays_;
  pybind11::tuple outputs_;
  std::vector<collectives::Buffer> buffers_;
  std::vector<std::int64_t> dims_;
};

// Throws the error of a plan whose arrays have changed.
[[noreturn]] void throw_changed();

// One array, and an output whose shape may differ from the array's.
class Argument {
 public:
  explicit Argument(pybind11::object array);
  // For a rank that passes no input: an output for rows of an array of another rank, or None.
  static Argument described_by(pybind11::object out);
  Argument(Argument&&) = default;
  Argument& operator=(Argument&&) = default;

  static constexpr std::size_t kNoDim = SIZE_MAX;
  static constexpr std::ptrdiff_t kApart = -1;

  // Takes an output, unless it is None, of this dtype and shape; the length of `free_dim` is free. It shares no memory
  // with the array, except that it may lie at byte `inside` of the array, or contain the array at byte `around`.
  void set_output(pybind11::object out, core::DType dtype, std::span<const std::int64_t> shape,
                  std::size_t free_dim = kNoDim, std::ptrdiff_t inside = kApart, std::ptrdiff_t around = kApart);

  const collectives::Buffer& buffer() const noexcept { return buffer_; }
  // The shape with another length of one dimension.
  std::vector<std::int64_t> shape_with(std::size_t dim, std::int64_t length) const;

  // Returns the output that the caller passed, or an array that owns the block in `results`.
  pybind11::object take(collectives::Results results, core::DType dtype, std::span<const std::int64_t> shape) const;

 private:
  Argument() = default;

  pybind11::object array_;
  pybind11::object out_;
  collectives::Buffer buffer_;
  std::vector<std::int64_t> dims_;
};

}  // namespace ringlet::bindings
