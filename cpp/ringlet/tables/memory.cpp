#include "ringlet/tables/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "ringlet/core/error.hpp"

namespace ringlet::tables {

namespace {

constexpr std::uint64_t kMagic = 0x32656c6261546c52;  // "RlTable2"

[[noreturn]] void refuse(const std::string& why) {
  throw core::ArgumentError("this descriptor does not refer to a table that this process can use: " + why + ".");
}

// After this function, only the count of updates in the header is read, so other later changes by another process have
// no effect.
Layout read_layout(const memory::Segment& segment) {
  if (segment.size() < sizeof(Header)) refuse("its file is too small");
  const Header& header = *reinterpret_cast<const Header*>(segment.data());
  const std::uint64_t num_dims = header.num_dims;
  const std::uint64_t dtype = header.dtype;
  if (header.magic != kMagic || num_dims > kMostDims || dtype >= core::kNumDTypes) {
    refuse("it was created by another program or another version of this library");
  }
  if (header.pid_namespace != sync::pid_namespace()) {
    refuse("it was created in another PID namespace, so ended processes cannot be detected");
  }
  const std::span<const std::int64_t> shape = std::span(header.dims).first(num_dims);
  Layout layout(std::vector(shape.begin(), shape.end()), static_cast<core::DType>(dtype));
  if (layout.total_bytes != segment.size()) {
    refuse("a file of " + layout.describe() + " has " + std::to_string(layout.total_bytes) + " bytes, this one " +
           std::to_string(segment.size()));
  }
  if (segment.reserved_bytes() < layout.journals_begin) refuse("no memory was reserved for a part of it");
  return layout;
}

}  // namespace

sync::Descriptor Memory::create(const Layout& layout) {
  memory::Segment segment = memory::Segment::create(layout.total_bytes);
  segment.reserve(0, layout.journals_begin);
  Header& header = *reinterpret_cast<Header*>(segment.data());
  header.magic = kMagic;
  header.pid_namespace = sync::pid_namespace();
  header.dtype = core::index_of(layout.dtype);
  header.num_dims = layout.shape.size();
  std::copy(layout.shape.begin(), layout.shape.end(), header.dims.begin());
  return sync::Descriptor(segment.release_descriptor());
}

Memory::Memory(sync::Descriptor table) : Memory(memory::Segment::attach(table.release())) {}

Memory::Memory(memory::Segment segment) : segment_(std::move(segment)), layout_(read_layout(segment_)) {
  std::byte* const data = segment_.data();
  seats_ = reinterpret_cast<Seat*>(data + sizeof(Header));
  words_ = reinterpret_cast<sync::ChunkWord*>(data + layout_.words_begin);
  chunks_ = data + layout_.chunks_begin;
  journals_ = data + layout_.journals_begin;
  segment_.populate(0, layout_.journals_begin);
}

void Memory::reserve_journal(std::size_t seat) {
  if (seats_[seat].has_journal != 0) return;
  segment_.reserve(layout_.journals_begin + seat * layout_.journal_bytes, layout_.journal_bytes);
  seats_[seat].has_journal = 1;
}

}  // namespace ringlet::tables
