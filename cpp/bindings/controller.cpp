#include "ringlet/collectives/algorithms/single_controller.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "interpreter.hpp"
#include "members.hpp"
#include "plan.hpp"
#include "registers.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::Buffer;

// Below this size, releasing the interpreter lock takes longer than combining the bytes.
constexpr std::size_t kAtOnce = std::size_t{16} << 10;

std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// Throws Unusable if an output overlaps an input that is not the output itself, ArgumentError if two outputs overlap.
void check_apart(std::vector<const void*> inputs, std::size_t input_bytes, std::vector<void*> outputs,
                 std::size_t output_bytes) {
  std::sort(inputs.begin(), inputs.end());
  std::sort(outputs.begin(), outputs.end());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (k > 0 && address(outputs[k]) < address(outputs[k - 1]) + output_bytes) {
      throw core::ArgumentError("two arrays of outs share memory: pass a separate array for each rank.");
    }
    // The first input that ends after the output begins.
    auto input = std::partition_point(inputs.begin(), inputs.end(), [&](const void* candidate) {
      return address(candidate) + input_bytes <= address(outputs[k]);
    });
    for (; input != inputs.end() && address(*input) < address(outputs[k]) + output_bytes; ++input) {
      if (*input != outputs[k] || input_bytes != output_bytes) throw Unusable();
    }
  }
}

// The call of a single controller: `out` is None, one array, or a sequence with one output for each array.
class Controller final : public Plan {
 public:
  Controller(const py::object& arrays, int op_number, const py::object& out, int workers)
      : op_(op_of(op_number)), workers_(workers), arguments_(arrays, py::none(), &op_), out_(out) {
    const std::vector<Buffer>& buffers = arguments_.buffers();
    if (buffers.empty()) throw Unusable();
    const Buffer& first = buffers.front();
    for (const Buffer& buffer : buffers) {
      if (buffer.dtype != first.dtype || !std::ranges::equal(buffer.shape, first.shape)) throw Unusable();
      inputs_.push_back(buffer.input);
    }
    collectives::check_supported(op_, first.dtype);
    if (!out.is_none()) take_outputs(first);
  }

  py::object run() override {
    check_memory();
    const Buffer& first = arguments_.buffers().front();
    const core::DType dtype = core::result_dtype(op_, first.dtype);
    memory::Block block;
    if (outputs_.empty()) block = memory::result_pool().allocate(first.count * core::size_of(dtype));
    void* const shared = block != nullptr ? block->data() : nullptr;
    const auto outputs = block != nullptr ? std::span<void* const>(&shared, 1) : std::span<void* const>(outputs_);
    const auto reduce = [&] { collectives::reduce_buffers(inputs_, first.count, first.dtype, op_, outputs, workers_); };
    if (first.input_bytes() * inputs_.size() <= kAtOnce) {
      reduce();
    } else {
      without_interpreter(reduce);
    }
    return block != nullptr ? array_on(std::move(block), dtype, first.shape) : result();
  }

 private:
  void take_outputs(const Buffer& first) {
    const bool is_array = py::isinstance<py::array>(out_);
    outs_ = is_array ? py::make_tuple(out_) : py::tuple(out_);
    if (!is_array && outs_.size() != inputs_.size()) throw Unusable();
    const core::DType dtype = core::result_dtype(op_, first.dtype);
    for (const py::handle out : outs_) {
      const Buffer given = writeable_buffer_of(out);
      if (given.dtype != dtype || !std::ranges::equal(given.shape, first.shape)) throw Unusable();
      outputs_.push_back(const_cast<void*>(given.input));
    }
    if (first.count > 0) check_apart(inputs_, first.input_bytes(), outputs_, first.count * core::size_of(dtype));
  }

  void check_memory() const {
    arguments_.check_memory();
    const std::size_t count = arguments_.buffers().front().count;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (!has_writeable_memory(outs_[k], outputs_[k], count)) throw_changed();
    }
  }

  // The caller's array, or a list of the caller's own.
  py::object result() const { return py::isinstance<py::array>(out_) ? out_ : py::object(py::list(outs_)); }

  core::Op op_;
  int workers_;
  Arguments arguments_;
  py::object out_;
  py::tuple outs_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

py::object reduce_buffers(const py::object& arrays, int op, const py::object& out, int workers) {
  return Controller(arrays, op, out, workers).run();
}

py::object plan_reduce_buffers(const py::object& arrays, int op, const py::object& out, int workers) {
  for (const py::handle array : py::tuple(arrays))
    buffer_of(array);  // throws for anything but an array, including numbers
  return callable_of(std::make_unique<Controller>(arrays, op, out, workers));
}

}  // namespace

void register_controller(py::module_& m) {
  m.def("reduce_buffers", reduce_buffers, "arrays"_a, "op"_a, "out"_a, "workers"_a = 1);
  m.def("plan_reduce_buffers", plan_reduce_buffers, "arrays"_a, "op"_a, "out"_a, "workers"_a = 1);
}

}  // namespace ringlet::bindings
