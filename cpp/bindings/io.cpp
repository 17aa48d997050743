#include "ringlet/io/crc32c.hpp"

#include <cstring>
#include <string>

#include "bytes_view.hpp"
#include "interpreter.hpp"
#include "registers.hpp"
#include "ringlet/io/records.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

// Fewer bytes than this are processed before another thread could start running.
constexpr std::size_t kWorthUnlocking = 4096;

std::uint32_t crc32c(const py::object& buffer, std::uint32_t initial) {
  const BytesView view(buffer);
  if (view.bytes().size() < kWorthUnlocking) return io::crc32c(view.bytes(), initial);
  std::uint32_t crc = 0;
  without_interpreter([&] { crc = io::crc32c(view.bytes(), initial); });
  return crc;
}

// The checksum by each implementation that this CPU supports, for comparison.
py::dict crc32c_by_target(const py::object& buffer) {
  const BytesView view(buffer);
  py::dict found;
  for (const io::Crc32c* way : io::runnable_crc32c())
    found[py::str(std::string(way->name))] = way->extend(0, view.bytes());
  return found;
}

const char* name_of(io::Fault fault) {
  switch (fault) {
    case io::Fault::kLengthChecksum:
      return "length";
    case io::Fault::kDataChecksum:
      return "data";
    case io::Fault::kNone:
      break;
  }
  return "";
}

// Reads the records in bytes [begin, end) of a buffer. Returns their data, the start of the first record that is not
// among them, the number of bytes that it needs, and its fault.
py::tuple split_records(const py::object& buffer, std::size_t begin, std::size_t end) {
  const BytesView view(buffer);
  const io::Bytes block = view.part(begin, end);
  io::Scan scan;
  without_interpreter([&] { scan = io::scan_records(block); });
  py::list records(scan.records.size());
  for (std::size_t i = 0; i < scan.records.size(); ++i) {
    const auto* data = reinterpret_cast<const char*>(block.data() + scan.records[i].begin);
    records[i] = py::bytes(data, scan.records[i].size);
  }
  return py::make_tuple(records, begin + scan.consumed, scan.wanted, name_of(scan.fault));
}

// Data with the header and the footer of a record.
py::bytes frame_record(const py::object& buffer) {
  const BytesView view(buffer);
  io::Frame frame;
  if (view.bytes().size() < kWorthUnlocking) {
    frame = io::frame_of(view.bytes());
  } else {
    without_interpreter([&] { frame = io::frame_of(view.bytes()); });
  }
  const std::size_t size = view.bytes().size();
  auto framed = py::reinterpret_steal<py::bytes>(
      PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(io::kHeaderBytes + size + io::kFooterBytes)));
  if (!framed) throw py::error_already_set();
  char* const at = PyBytes_AS_STRING(framed.ptr());
  std::memcpy(at, frame.header.data(), io::kHeaderBytes);
  if (size != 0) std::memcpy(at + io::kHeaderBytes, view.bytes().data(), size);
  std::memcpy(at + io::kHeaderBytes + size, frame.footer.data(), io::kFooterBytes);
  return framed;
}

}  // namespace

void register_io(py::module_& m) {
  m.def("crc32c", crc32c, "buffer"_a, "initial"_a = 0);
  m.def("crc32c_by_target", crc32c_by_target, "buffer"_a);
  m.def("split_records", split_records, "buffer"_a, "begin"_a, "end"_a);
  m.def("frame_record", frame_record, "data"_a);
}

}  // namespace ringlet::bindings
