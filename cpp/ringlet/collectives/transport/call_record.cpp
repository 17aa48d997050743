#include "ringlet/collectives/transport/call_record.hpp"

#include <cstring>
#include <string>

namespace ringlet::collectives {

namespace {

constexpr std::size_t kHeadWords = 4;
constexpr std::size_t kPartWords = 7;
constexpr std::uint64_t kHasOutputsBit = 1;
constexpr std::uint64_t kHasPartsBit = 2;
constexpr std::uint64_t kIsRaggedBit = 4;

std::size_t name_words(std::size_t bytes) { return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t); }

std::uint64_t pair_of(std::size_t low, std::size_t high) {
  return static_cast<std::uint64_t>(low) | static_cast<std::uint64_t>(high) << 32;
}

class Writer {
 public:
  explicit Writer(std::span<std::uint64_t> words) : next_(words.data()) {}
  void put(std::uint64_t word) { *next_++ = word; }
  void put(std::span<const std::int64_t> numbers) {
    for (const std::int64_t number : numbers) put(static_cast<std::uint64_t>(number));
  }
  void put(const std::string& text) {
    if (!text.empty()) std::memcpy(next_, text.data(), text.size());
    next_ += name_words(text.size());
  }

 private:
  std::uint64_t* next_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint64_t> words) : next_(words.data()) {}
  std::uint64_t take() { return *next_++; }
  std::int64_t take_number() { return static_cast<std::int64_t>(take()); }
  void take(std::string& text, std::size_t bytes) {
    text.assign(reinterpret_cast<const char*>(next_), bytes);
    next_ += name_words(bytes);
  }

 private:
  const std::uint64_t* next_;
};

}  // namespace

std::size_t record_words(const RecordContents& telling) {
  const Call& call = telling.call;
  return kHeadWords + call.buffers.size() * kPartWords + call.dims.size() + call.numbers.size() +
         telling.results.size() + name_words(call.name.size());
}

void write_record(const RecordContents& telling, std::span<std::uint64_t> words) {
  const Call& call = telling.call;
  Writer writer(words);
  const std::uint64_t bits = (call.has_outputs ? kHasOutputsBit : 0) | (call.has_buffers ? kHasPartsBit : 0) |
                             (call.is_ragged ? kIsRaggedBit : 0);
  writer.put(static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.op) << 8 |
             static_cast<std::uint64_t>(call.algorithm) << 16 | bits << 24 |
             static_cast<std::uint64_t>(call.axis) << 32);
  writer.put(pair_of(static_cast<std::size_t>(call.root), call.series));
  writer.put(pair_of(call.buffers.size(), call.numbers.size()));
  writer.put(pair_of(telling.results.size(), call.name.size()));
  for (std::size_t index = 0; index < call.buffers.size(); ++index) {
    const Buffer& part = call.buffers[index];
    writer.put(telling.inputs[index].bits());
    writer.put(telling.outputs[index].bits());
    writer.put(telling.own_inputs[index].bits());
    writer.put(telling.own_outputs[index].bits());
    writer.put(part.count);
    writer.put(pair_of(static_cast<std::size_t>(part.dtype), part.shape.size()));
    writer.put(static_cast<std::uint64_t>(part.output_length));
    writer.put(part.shape);
  }
  writer.put(call.numbers);
  for (const BufferName result : telling.results) writer.put(result.bits());
  writer.put(call.name);
}

void read_record(std::span<const std::uint64_t> words, RemoteCall& into) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  Reader reader(words);
  const std::uint64_t head = reader.take();
  Call& call = into.call;
  call.reset(static_cast<Kind>(head & 0xFF));
  call.op = static_cast<core::Op>(head >> 8 & 0xFF);
  call.algorithm = static_cast<Algorithm>(head >> 16 & 0xFF);
  call.has_outputs = (head >> 24 & kHasOutputsBit) != 0;
  call.has_buffers = (head >> 24 & kHasPartsBit) != 0;
  call.is_ragged = (head >> 24 & kIsRaggedBit) != 0;
  call.axis = static_cast<int>(head >> 32);
  const std::uint64_t place = reader.take();
  call.root = static_cast<int>(place & kLow);
  call.series = static_cast<std::uint32_t>(place >> 32);
  const std::uint64_t counts = reader.take();
  const std::uint64_t sizes = reader.take();
  into.inputs.clear();
  into.outputs.clear();
  into.own_inputs.clear();
  into.own_outputs.clear();
  into.results.clear();
  call.dims.clear();
  std::vector<std::size_t> ndims;
  for (std::uint64_t index = 0; index < (counts & kLow); ++index) {
    into.inputs.emplace_back(reader.take());
    into.outputs.emplace_back(reader.take());
    into.own_inputs.emplace_back(reader.take());
    into.own_outputs.emplace_back(reader.take());
    Buffer part;
    part.count = reader.take();
    const std::uint64_t type = reader.take();
    part.dtype = static_cast<core::DType>(type & kLow);
    part.output_length = reader.take_number();
    ndims.push_back(type >> 32);
    for (std::size_t dim = 0; dim < ndims.back(); ++dim) call.dims.push_back(reader.take_number());
    call.buffers.push_back(part);
  }
  std::size_t used = 0;  // the shapes, now that `dims` is not reallocated
  for (std::size_t index = 0; index < call.buffers.size(); used += ndims[index++]) {
    call.buffers[index].shape = std::span(call.dims).subspan(used, ndims[index]);
  }
  for (std::uint64_t index = 0; index < counts >> 32; ++index) call.numbers.push_back(reader.take_number());
  for (std::uint64_t index = 0; index < (sizes & kLow); ++index) into.results.emplace_back(reader.take());
  reader.take(call.name, sizes >> 32);
}

}  // namespace ringlet::collectives
