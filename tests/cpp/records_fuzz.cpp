// Damaged TFRecord files and examples: whatever the bytes are, the readers end with records or with an error, read no
// byte behind their input, and take no more memory than it. Inputs begin as good ones, and bytes of them are changed,
// lost, doubled and put together anew; the checksums of some are made to fit again, so that what stands behind them is
// reached. Each input ends where memory ends.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/io/example.hpp"
#include "ringlet/io/records.hpp"

namespace {

using namespace ringlet;
using io::Bytes;
using io::FeatureColumn;
using io::FeatureKind;
using stress::check;
using stress::Random;

// Memory behind which there is a page that nobody can touch.
class Edge {
 public:
  Edge() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = 16 * page;
    void* const mapped = mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(mapped != MAP_FAILED, "there is memory");
    memory_ = static_cast<std::byte*>(mapped);
    check(mprotect(memory_ + size_, page, PROT_NONE) == 0, "a page can be closed");
  }
  Bytes place(const std::string& bytes) {
    check(bytes.size() <= size_, "inputs are small");
    std::byte* const begin = memory_ + size_ - bytes.size();
    std::memcpy(begin, bytes.data(), bytes.size());
    return {begin, bytes.size()};
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string framed(const std::string& data) {
  const io::Frame frame = io::frame_of(bytes_of(data));
  std::string record(reinterpret_cast<const char*>(frame.header.data()), frame.header.size());
  return record.append(data).append(reinterpret_cast<const char*>(frame.footer.data()), frame.footer.size());
}

std::string drawn(Random& random, std::size_t most) {
  std::string text(random.below(most + 1), '\0');
  for (char& byte : text) byte = static_cast<char>(random.below(256));
  return text;
}

constexpr std::array<std::uint64_t, 8> kLengths = {0,
                                                   1,
                                                   1000,
                                                   std::uint64_t{1} << 31,
                                                   std::uint64_t{1} << 63,
                                                   std::numeric_limits<std::uint64_t>::max(),
                                                   std::numeric_limits<std::uint64_t>::max() - 4,
                                                   std::numeric_limits<std::uint64_t>::max() - 16};

// A header of any length whose checksum fits.
std::string false_header(Random& random) {
  const std::uint64_t length = kLengths[random.below(kLengths.size())];
  std::string header(12, '\0');
  std::memcpy(header.data(), &length, 8);
  const std::uint32_t crc = io::masked(io::crc32c(bytes_of(header).first(8)));
  std::memcpy(header.data() + 8, &crc, 4);
  return header;
}

std::string example(Random& random) {
  io::ExampleWriter writer;
  for (std::size_t features = random.below(4); features > 0; --features) {
    const std::string name = random.below(2) == 0 ? "a" : drawn(random, 3);
    const std::size_t count = random.below(5);
    switch (random.below(3)) {
      case 0: {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < count; ++i) texts.push_back(drawn(random, 6));
        std::vector<Bytes> views;
        for (const std::string& text : texts) views.push_back(bytes_of(text));
        writer.add(name, views);
        break;
      }
      case 1:
        writer.add(name, std::vector<float>(count, 1.5F));
        break;
      default:
        writer.add(name, std::vector<std::int64_t>(count, static_cast<std::int64_t>(random.below(500)) - 250));
    }
  }
  return writer.finish();
}

std::string file(Random& random) {
  std::string bytes;
  for (std::size_t records = random.below(4); records > 0; --records) {
    bytes += framed(random.below(3) == 0 ? example(random) : drawn(random, 40));
  }
  if (random.below(4) == 0) bytes += false_header(random);
  return bytes;
}

void damage(std::string& bytes, Random& random) {
  for (std::size_t times = random.below(4); times > 0 && !bytes.empty(); --times) {
    const std::size_t at = random.below(bytes.size());
    const std::size_t count = random.below(bytes.size() - at + 1);
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.below(3) == 0 ? 0xFF : random.below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, count);
        break;
      default:
        bytes.insert(random.below(bytes.size()), bytes.substr(at, std::min<std::size_t>(count, 64)));
    }
  }
}

// A scan tells the truth: the records lie one behind the other within what was consumed, and their checksums fit.
void check_scan(Bytes block) {
  const io::Scan scan = io::scan_records(block);
  std::size_t at = 0;
  for (const io::Record& record : scan.records) {
    check(record.begin == at + io::kHeaderBytes && record.size <= block.size(), "records follow each other");
    const io::Frame frame = io::frame_of(block.subspan(record.begin, record.size));
    check(std::memcmp(frame.header.data(), block.data() + at, io::kHeaderBytes) == 0, "the header fits");
    at = record.begin + record.size;
    check(std::memcmp(frame.footer.data(), block.data() + at, io::kFooterBytes) == 0, "the footer fits");
    at += io::kFooterBytes;
  }
  check(at == scan.consumed && at <= block.size(), "what was consumed is the records");
  if (scan.fault == io::Fault::kNone) check(scan.wanted > block.size() - at, "it ends because more is wanted");
}

std::size_t held_bytes(const io::FeatureValues& values) {
  return values.ints.size() * sizeof(std::int64_t) + values.floats.size() * sizeof(float) +
         values.texts.size() * sizeof(Bytes);
}

// Either an error, or values that the message has room for.
void check_example(Bytes message) {
  constexpr std::size_t kMostPerByte = 16;  // an empty text takes two bytes, and a view of it sixteen
  try {
    for (const io::NamedFeature& feature : io::read_example(message)) {
      check(held_bytes(feature.values) <= kMostPerByte * message.size(), "values are no more than the message");
    }
  } catch (const core::ArgumentError&) {
  }
  std::vector<FeatureColumn> columns;
  for (const auto kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64}) {
    columns.push_back({.name = "a", .kind = kind});
  }
  try {
    io::append_example(message, columns);
    for (const FeatureColumn& column : columns) {
      check(column.lengths.size() == 1, "an example is one row");
      const std::int64_t length = column.lengths[0];
      check(length < 0 || static_cast<std::size_t>(length) == column.values.count(column.kind), "lengths count values");
    }
  } catch (const core::ArgumentError&) {
  }
}

void good_ones_are_read(Random& random) {
  const std::string data = drawn(random, 300);
  const std::string bytes = framed(data) + framed("");
  const io::Scan scan = io::scan_records(bytes_of(bytes));
  check(scan.records.size() == 2 && scan.fault == io::Fault::kNone && scan.consumed == bytes.size(), "both are read");
  check(bytes.compare(scan.records[0].begin, scan.records[0].size, data) == 0, "what was written is read");
  io::read_example(bytes_of(example(random)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t inputs = 4 * stress::calls_of(argc, argv, 100'000);
  Random random(11);
  Edge edge;
  for (std::size_t input = 0; input < inputs; ++input) {
    std::string bytes = input % 2 == 0 ? file(random) : example(random);
    damage(bytes, random);
    const Bytes placed = edge.place(bytes);
    if (input % 2 == 0) {
      check_scan(placed);
    } else {
      check_example(placed);
    }
    if (input % 64 == 0) good_ones_are_read(random);
  }
}
