#include "ringlet/io/example.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bytes_view.hpp"
#include "interpreter.hpp"
#include "registers.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using io::FeatureKind;

io::Bytes bytes_of(py::handle bytes) {
  if (!PyBytes_Check(bytes.ptr())) throw py::type_error("an example must be a bytes object");
  return {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(bytes.ptr())),
          static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

FeatureKind kind_of(int number) {
  if (number < 1 || number > 3) throw core::ArgumentError("the kind of a feature must be 1, 2 or 3");
  return static_cast<FeatureKind>(number);
}

template <class T>
py::array_t<T> array_of(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::object values_of(const io::FeatureValues& values, FeatureKind kind) {
  if (kind == FeatureKind::kFloat) return array_of(values.floats);
  if (kind == FeatureKind::kInt64) return array_of(values.ints);
  py::list texts(values.texts.size());
  for (std::size_t i = 0; i < values.texts.size(); ++i) {
    texts[i] = py::bytes(reinterpret_cast<const char*>(values.texts[i].data()), values.texts[i].size());
  }
  return texts;
}

// All features of an example: triples of name, kind and values.
py::list read_example(const py::bytes& example) {
  const std::vector<io::NamedFeature> features = io::read_example(bytes_of(example));
  py::list found;
  for (const io::NamedFeature& feature : features) {
    found.append(py::make_tuple(py::bytes(feature.name.data(), feature.name.size()), static_cast<int>(feature.kind),
                                values_of(feature.values, feature.kind)));
  }
  return found;
}

// Some features of many examples: for each feature, all values and their number in each example.
py::list read_features(const py::tuple& examples, const std::vector<std::pair<std::string, int>>& wanted) {
  std::vector<io::FeatureColumn> columns;
  for (const auto& [name, number] : wanted) columns.push_back({.name = name, .kind = kind_of(number)});
  std::vector<io::Bytes> messages;
  for (const py::handle example : examples) messages.push_back(bytes_of(example));
  without_interpreter([&] {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      try {
        io::append_example(messages[i], columns);
      } catch (const core::ArgumentError& error) {
        throw core::ArgumentError("example " + std::to_string(i) + ", " + error.what());
      }
    }
  });
  py::list found;
  for (const io::FeatureColumn& column : columns) {
    found.append(py::make_tuple(values_of(column.values, column.kind), array_of(column.lengths)));
  }
  return found;
}

using Ints = py::array_t<std::int64_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style>;

template <class T>
std::span<const T> span_of(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

// An example from triples of name, kind and values; values have the classes that read_example() returns.
py::bytes write_example(const py::list& features) {
  io::ExampleWriter writer;
  for (const py::handle feature : features) {
    const auto [name, number, values] = feature.cast<std::tuple<std::string, int, py::object>>();
    const FeatureKind kind = number == 0 ? FeatureKind::kNone : kind_of(number);
    if (kind == FeatureKind::kNone) {
      writer.add(name);
    } else if (kind == FeatureKind::kInt64) {
      writer.add(name, span_of(values.cast<Ints>()));
    } else if (kind == FeatureKind::kFloat) {
      writer.add(name, span_of(values.cast<Floats>()));
    } else {
      std::vector<io::Bytes> texts;
      const auto list = values.cast<py::tuple>();
      for (const py::handle text : list) texts.push_back(bytes_of(text));
      writer.add(name, texts);
    }
  }
  return writer.finish();
}

}  // namespace

void register_examples(py::module_& m) {
  m.def("read_example", read_example, "example"_a);
  m.def("read_features", read_features, "examples"_a, "wanted"_a);
  m.def("write_example", write_example, "features"_a);
}

}  // namespace ringlet::bindings
