#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "registers.hpp"
#include "ringlet/collectives/group.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::Algorithm;
using collectives::Group;
using collectives::Member;
using collectives::Part;

// The arrays of one call: kept alive while it runs, described for the core.
class Arguments {
 public:
  Arguments(const py::sequence& arrays, const py::object& outs, core::Op op, bool is_reduction)
      : arrays_(tuple_of(arrays)), outputs_(tuple_of(outs)) {
    parts_.reserve(arrays_.size());
    for (const py::handle array : arrays_) parts_.push_back(part_of(array));
    keep_shapes();
    if (outs.is_none()) return;
    if (outputs_.size() != parts_.size()) throw Unusable();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const core::DType result = is_reduction ? core::result_dtype(op, parts_[i].dtype) : parts_[i].dtype;
      parts_[i].output = output_for(outputs_[i], parts_[i], result);
    }
  }

  const std::vector<Part>& parts() const noexcept { return parts_; }
  py::list outputs() const { return py::list(outputs_); }

 private:
  // Tuples, so that no other thread takes an array away meanwhile.
  static py::tuple tuple_of(const py::object& arrays) { return arrays.is_none() ? py::tuple() : py::tuple(arrays); }

  // An array's shape may be assigned to while the call runs without the interpreter.
  void keep_shapes() {
    std::size_t num_dims = 0;
    for (const Part& part : parts_) num_dims += part.shape.size();
    dims_.reserve(num_dims);
    for (Part& part : parts_) {
      const std::size_t first = dims_.size();
      dims_.insert(dims_.end(), part.shape.begin(), part.shape.end());
      part.shape = std::span<const std::int64_t>(dims_).subspan(first);
    }
  }

  py::tuple arrays_;
  py::tuple outputs_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> dims_;
};

py::list as_list(collectives::Results results, std::span<const Part> parts, core::Op op, bool is_reduction) {
  py::list list(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const core::DType dtype = is_reduction ? core::result_dtype(op, parts[i].dtype) : parts[i].dtype;
    list[i] = array_on(std::move(results[i]), dtype, parts[i].shape);
  }
  return list;
}

core::Op op_of(int number) {
  if (number < 0 || number >= static_cast<int>(core::kNumOps)) throw core::ArgumentError("no such operation.");
  return static_cast<core::Op>(number);
}

Algorithm algorithm_of(int number) {
  if (number < 0 || number > static_cast<int>(Algorithm::kSmall)) throw core::ArgumentError("no such algorithm.");
  return static_cast<Algorithm>(number);
}

py::list all_reduce(Member& member, const py::sequence& arrays, int op_number, int algorithm_number,
                    const py::object& outs) {
  const core::Op op = op_of(op_number);
  const Algorithm algorithm = algorithm_of(algorithm_number);
  const Arguments arguments(arrays, outs, op, true);
  collectives::Results results;
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { results = member.all_reduce(arguments.parts(), op, algorithm, poll); });
  return outs.is_none() ? as_list(std::move(results), arguments.parts(), op, true) : arguments.outputs();
}

py::list broadcast(Member& member, const py::object& arrays, int root, const py::object& outs) {
  const bool has_arrays = !arrays.is_none();
  const auto sequence = has_arrays ? py::cast<py::sequence>(arrays) : py::sequence(py::tuple());
  const Arguments arguments(sequence, outs, core::Op::kSum, false);
  collectives::Results results;
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { results = member.broadcast(arguments.parts(), has_arrays, root, poll); });
  if (!outs.is_none()) return arguments.outputs();
  return as_list(std::move(results), member.described_by(root), core::Op::kSum, false);
}

void barrier(Member& member, const std::string& name) {
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { member.barrier(name, poll); });
}

py::object reduce_buffers(const py::sequence& arrays, int op_number, const py::object& out) {
  const core::Op op = op_of(op_number);
  const Arguments arguments(arrays, py::none(), op, true);
  const std::vector<Part>& parts = arguments.parts();
  if (parts.empty()) throw Unusable();
  const Part& first = parts.front();
  std::vector<const void*> inputs;
  for (const Part& part : parts) {
    if (part.dtype != first.dtype ||
        !std::equal(part.shape.begin(), part.shape.end(), first.shape.begin(), first.shape.end())) {
      throw Unusable();
    }
    inputs.push_back(part.input);
  }
  const core::DType result = core::result_dtype(op, first.dtype);
  const std::size_t bytes = first.count * core::size_of(result);
  memory::Block block = out.is_none() ? memory::result_pool().allocate(bytes) : memory::Block();
  void* output = out.is_none() ? block->data() : nullptr;
  if (!out.is_none()) {
    for (const Part& part : parts) output = output_for(out, part, result);
  }
  without_interpreter([&] { collectives::reduce_buffers(inputs, first.count, first.dtype, op, output); });
  return out.is_none() ? array_on(std::move(block), result, first.shape) : out;
}

std::unique_ptr<Group> make_group(int num_ranks, double timeout_seconds, std::uint64_t epoch, bool from_interpreter) {
  return std::make_unique<Group>(
      num_ranks, collectives::Options{
                     .timeout = timeout_of(timeout_seconds), .epoch = epoch, .from_interpreter = from_interpreter});
}

}  // namespace

void register_collectives(py::module_& m) {
  py::register_local_exception<Unusable>(m, "Unusable");
  py::class_<Member>(m, "Member")
      .def_property_readonly("rank", &Member::rank)
      .def_property_readonly("num_ranks", [](const Member& member) { return member.group().num_ranks(); })
      .def_property_readonly("calls", &Member::calls)
      .def("all_reduce", all_reduce, "arrays"_a, "op"_a, "algorithm"_a, "outs"_a)
      .def("broadcast", broadcast, "arrays"_a, "root"_a, "outs"_a)
      .def("barrier", barrier, "name"_a)
      .def(
          "depart", [](Member& member, const std::string& reason) { member.depart(reason); }, "reason"_a)
      .def("rejoin", &Member::rejoin);
  py::class_<Group>(m, "Group")
      .def(py::init(&make_group), "num_ranks"_a, "timeout_seconds"_a, "epoch"_a, "from_interpreter"_a = true)
      .def_property_readonly("num_ranks", &Group::num_ranks)
      .def_property_readonly("epoch", &Group::epoch)
      .def_property_readonly("failure", &Group::failure)
      .def(
          "abort", [](Group& group, const std::string& reason) { group.abort(reason); }, "reason"_a)
      .def("member", &Group::member, "rank"_a);
  m.def("reduce_buffers", reduce_buffers, "arrays"_a, "op"_a, "out"_a);
}

}  // namespace ringlet::bindings
