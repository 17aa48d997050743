#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "call_place.hpp"
#include "interpreter.hpp"
#include "members.hpp"
#include "registers.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::Algorithm;
using collectives::Buffer;
using collectives::Group;
using collectives::Results;
using Shape = std::vector<std::int64_t>;

// Runs `call(poll)` of a member without holding the interpreter lock.
template <class Call>
Results results_of(const HeldMember& member, Call&& call) {
  Results results;
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { results = call(poll); }, member.takes_turns());
  return results;
}

py::list as_list(Results results, std::span<const Buffer> buffers, const core::Op* op) {
  py::list list(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const core::DType dtype = op == nullptr ? buffers[i].dtype : core::result_dtype(*op, buffers[i].dtype);
    list[i] = array_on(std::move(results[i]), dtype, buffers[i].shape);
  }
  return list;
}

py::list all_reduce(HeldMember& member, const py::object& arrays, int op_number, int algorithm_number,
                    const py::object& outs) {
  const core::Op op = op_of(op_number);
  const Algorithm algorithm = algorithm_of(algorithm_number);
  const Arguments arguments(arrays, outs, &op);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.all_reduce(arguments.buffers(), op, algorithm, poll); });
  return outs.is_none() ? as_list(std::move(results), arguments.buffers(), &op) : arguments.outputs();
}

py::object reduce(HeldMember& member, py::object array, int op_number, int root, py::object out,
                  const std::string& name) {
  const core::Op op = op_of(op_number);
  Argument argument(std::move(array));
  const core::DType result = core::result_dtype(op, argument.buffer().dtype);
  const bool may_be_in_place = result == argument.buffer().dtype;
  argument.set_output(std::move(out), result, argument.buffer().shape, Argument::kNoDim,
                      may_be_in_place ? 0 : Argument::kApart);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.reduce(argument.buffer(), op, root, poll, name); });
  if (member.rank() != root) return py::none();
  return argument.take(std::move(results), result, argument.buffer().shape);
}

// The shape of each of the equal blocks along dimension 0.
Shape block_shape(const Argument& argument, const HeldMember& member) {
  if (argument.buffer().shape.empty()) throw Unusable();
  return argument.shape_with(0, argument.buffer().shape[0] / member.group().num_ranks());
}

py::object reduce_scatter(HeldMember& member, py::object array, int op_number, py::object out) {
  const core::Op op = op_of(op_number);
  Argument argument(std::move(array));
  const Shape shape = block_shape(argument, member);
  const core::DType result = core::result_dtype(op, argument.buffer().dtype);
  if (argument.buffer().shape[0] % member.group().num_ranks() != 0) {
    throw core::ArgumentError("cannot split " + std::to_string(argument.buffer().shape[0]) + " rows into " +
                              std::to_string(member.group().num_ranks()) + " equal blocks, one for each rank.");
  }
  const std::size_t block_bytes =
      argument.buffer().input_bytes() / static_cast<std::size_t>(member.group().num_ranks());
  const auto place = static_cast<std::ptrdiff_t>(block_bytes) * member.rank();
  argument.set_output(std::move(out), result, shape, Argument::kNoDim,
                      result == argument.buffer().dtype ? place : Argument::kApart);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.reduce_scatter(argument.buffer(), op, poll); });
  return argument.take(std::move(results), result, shape);
}

py::object exclusive_scan(HeldMember& member, py::object array, int op_number, py::object out) {
  const core::Op op = op_of(op_number);
  Argument argument(std::move(array));
  argument.set_output(std::move(out), argument.buffer().dtype, argument.buffer().shape, Argument::kNoDim, 0);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.exclusive_scan(argument.buffer(), op, poll); });
  return argument.take(std::move(results), argument.buffer().dtype, argument.buffer().shape);
}

// The length of a gather's result along the axis, from the records of all ranks.
std::int64_t gathered_length(const HeldMember& member, int axis) {
  std::int64_t length = 0;
  for (int rank = 0; rank < member.group().num_ranks(); ++rank) {
    length += member.record_of(rank).buffers.front().shape[static_cast<std::size_t>(axis)];
  }
  return length;
}

py::object gather(HeldMember& member, py::object array, std::optional<int> root, int axis, py::object out) {
  Argument argument(std::move(array));
  const Buffer& buffer = argument.buffer();
  if (axis < 0 || static_cast<std::size_t>(axis) >= buffer.shape.size()) throw core::ArgumentError("no such axis.");
  const auto dim = static_cast<std::size_t>(axis);
  // An output may hold the input in its place if all pieces are equal and follow each other.
  const auto place = static_cast<std::ptrdiff_t>(buffer.input_bytes()) * member.rank();
  argument.set_output(std::move(out), buffer.dtype, buffer.shape, dim, Argument::kApart,
                      axis == 0 ? place : Argument::kApart);
  Results results = results_of(member, [&](sync::Poll* poll) {
    return root.has_value() ? member.gather(buffer, *root, axis, poll) : member.all_gather(buffer, axis, poll);
  });
  if (root.has_value() && member.rank() != *root) return py::none();
  const Shape shape = results.empty() ? Shape() : argument.shape_with(dim, gathered_length(member, axis));
  return argument.take(std::move(results), buffer.dtype, shape);
}

py::object all_gather(HeldMember& member, py::object array, int axis, py::object out) {
  return gather(member, std::move(array), std::nullopt, axis, std::move(out));
}

py::object gather_to(HeldMember& member, py::object array, int root, int axis, py::object out) {
  return gather(member, std::move(array), root, axis, std::move(out));
}

// The argument of the root of a scatter; `rows` receives the number of rows for each rank.
Argument rows_to_scatter(const HeldMember& member, py::object array, py::object out, Shape& rows) {
  Argument argument(std::move(array));
  const Shape shape = block_shape(argument, member);
  const int num_ranks = member.group().num_ranks();
  if (rows.empty()) {
    rows.assign(static_cast<std::size_t>(num_ranks), shape[0]);
    if (argument.buffer().shape[0] % num_ranks != 0) {
      throw core::ArgumentError("cannot split " + std::to_string(argument.buffer().shape[0]) + " rows into " +
                                std::to_string(num_ranks) + " equal blocks, one for each rank. Pass counts.");
    }
  }
  argument.set_output(std::move(out), argument.buffer().dtype, shape, 0);
  return argument;
}

py::object scatter(HeldMember& member, py::object array, int root, const std::optional<Shape>& counts, py::object out) {
  Shape rows = counts.value_or(Shape());
  Argument argument = array.is_none() ? Argument::described_by(std::move(out))
                                      : rows_to_scatter(member, std::move(array), std::move(out), rows);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.scatter(argument.buffer(), rows, root, poll); });
  if (results.empty()) return argument.take({}, argument.buffer().dtype, {});
  const collectives::Call& call = member.record_of(root);
  Shape shape(call.buffers.front().shape.begin(), call.buffers.front().shape.end());
  shape[0] = call.numbers[static_cast<std::size_t>(member.rank())];
  return argument.take(std::move(results), call.buffers.front().dtype, shape);
}

py::list broadcast(HeldMember& member, const py::object& arrays, int root, const py::object& outs) {
  const Arguments arguments(arrays, outs, nullptr);
  Results results = results_of(
      member, [&](sync::Poll* poll) { return member.broadcast(arguments.buffers(), !arrays.is_none(), root, poll); });
  if (!outs.is_none()) return arguments.outputs();
  return as_list(std::move(results), member.record_of(root).buffers, nullptr);
}

py::object all_to_all(HeldMember& member, py::object array, const std::optional<Shape>& counts, py::object out) {
  Argument argument(std::move(array));
  const Buffer& buffer = argument.buffer();
  if (buffer.shape.empty()) throw Unusable();
  argument.set_output(std::move(out), buffer.dtype, buffer.shape, counts.has_value() ? 0 : Argument::kNoDim);
  Results results = results_of(member, [&](sync::Poll* poll) {
    return member.all_to_all(buffer, counts.value_or(Shape()), counts.has_value(), poll);
  });
  return argument.take(std::move(results), buffer.dtype, argument.shape_with(0, member.rows_received()));
}

py::object permute(HeldMember& member, py::object array,
                   const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, py::object out) {
  Argument argument(std::move(array));
  Shape numbers;
  for (const auto& [source, target] : pairs) numbers.insert(numbers.end(), {source, target});
  argument.set_output(std::move(out), argument.buffer().dtype, argument.buffer().shape);
  Results results =
      results_of(member, [&](sync::Poll* poll) { return member.permute(argument.buffer(), numbers, poll); });
  return argument.take(std::move(results), argument.buffer().dtype, argument.buffer().shape);
}

void barrier(HeldMember& member, const std::string& name) {
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { member.barrier(name, poll); }, member.takes_turns());
}

py::object split(HeldMember& member, std::optional<int> color, std::int64_t key, std::int64_t label) {
  collectives::SubgroupMember part;
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { part = member.split(color, key, poll, label); });
  if (part.group == nullptr) return py::none();
  return py::make_tuple(std::make_unique<HeldMember>(std::move(part.group), part.rank), part.ranks, part.labels);
}

int num_ranks(HeldMember& member) { return member.group().num_ranks(); }
std::shared_ptr<Group> group_of(HeldMember& member) { return member.keeper(); }
std::uint64_t calls(HeldMember& member) { return member.calls(); }
void begin_series(HeldMember& member) { member.begin_series(); }
void end_series(HeldMember& member) { member.end_series(); }
void set_extra_time(HeldMember& member, double seconds) { member.set_extra_time(timeout_of(seconds)); }
void depart(HeldMember& member, const std::string& reason) { member.depart(reason); }
void rejoin(HeldMember& member) { member.rejoin(); }

// The same for a method of a member, which is kept in use during the call.
template <class Result, class... Args>
auto in_use(Result (*call)(HeldMember&, Args...)) {
  return [call](HeldMember& member, Args... args) -> Result {
    const HeldMember::Use use(member);
    return call(member, std::forward<Args>(args)...);
  };
}

// The same for a call that all ranks make: it first waits for earlier asynchronous calls.
template <class Result, class... Args>
auto in_turn(Result (*call)(HeldMember&, Args...)) {
  return [call](HeldMember& member, Args... args) -> Result {
    note_place();
    member.wait_for_turn();
    const HeldMember::Use use(member);
    return call(member, std::forward<Args>(args)...);
  };
}

}  // namespace

core::Op op_of(int number) {
  if (number < 0 || number >= static_cast<int>(core::kNumOps)) throw core::ArgumentError("no such operation.");
  return static_cast<core::Op>(number);
}

Algorithm algorithm_of(int number) {
  if (number < 0 || number > static_cast<int>(Algorithm::kSmall)) throw core::ArgumentError("no such algorithm.");
  return static_cast<Algorithm>(number);
}

void register_collectives(py::module_& m) {
  py::register_local_exception<Unusable>(m, "Unusable");
  py::class_<HeldMember>(m, "Member")
      .def_property_readonly("rank", &HeldMember::rank)
      .def_property_readonly("num_ranks", in_use(num_ranks))
      .def_property_readonly("group", in_use(group_of))
      .def_property_readonly("calls", in_use(calls))
      .def("all_reduce", in_turn(all_reduce), "arrays"_a, "op"_a, "algorithm"_a, "outs"_a)
      .def("reduce", in_turn(reduce), "array"_a, "op"_a, "root"_a, "out"_a, "name"_a = "")
      .def("reduce_scatter", in_turn(reduce_scatter), "array"_a, "op"_a, "out"_a)
      .def("exclusive_scan", in_turn(exclusive_scan), "array"_a, "op"_a, "out"_a)
      .def("all_gather", in_turn(all_gather), "array"_a, "axis"_a, "out"_a)
      .def("gather", in_turn(gather_to), "array"_a, "root"_a, "axis"_a, "out"_a)
      .def("scatter", in_turn(scatter), "array"_a, "root"_a, "counts"_a, "out"_a)
      .def("broadcast", in_turn(broadcast), "arrays"_a, "root"_a, "outs"_a)
      .def("all_to_all", in_turn(all_to_all), "array"_a, "counts"_a, "out"_a)
      .def("collective_permute", in_turn(permute), "array"_a, "pairs"_a, "out"_a)
      .def("barrier", in_turn(barrier), "name"_a)
      .def("split", in_turn(split), "color"_a, "key"_a, "label"_a)
      .def("begin_series", in_use(begin_series))
      .def("end_series", in_use(end_series))
      .def("set_extra_time", in_use(set_extra_time), "seconds"_a)
      .def("depart", in_use(depart), "reason"_a)
      .def("rejoin", in_use(rejoin))
      .def("set_gate", &HeldMember::set_gate, "gate"_a)
      .def("close", [](HeldMember& member, const std::string& reason) { return member.close(reason); }, "reason"_a);
}

}  // namespace ringlet::bindings
