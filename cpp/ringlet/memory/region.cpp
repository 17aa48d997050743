#include "ringlet/memory/region.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace ringlet::memory {

namespace {

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// Maps one unit more than asked for and unmaps what lies outside the aligned part.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) {
  if (bytes > SIZE_MAX - alignment) throw std::bad_alloc();
  void* mapped = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  auto* const aligned =
      begin + (round_up(reinterpret_cast<std::uintptr_t>(begin), alignment) - reinterpret_cast<std::uintptr_t>(begin));
  const auto head = static_cast<std::size_t>(aligned - begin);
  if (head > 0) munmap(begin, head);
  if (head < alignment) munmap(aligned + bytes, alignment - head);
#if defined(MADV_HUGEPAGE)
  madvise(aligned, bytes, MADV_HUGEPAGE);  // a hint: without huge pages the memory works all the same
#endif
  return aligned;
}

}  // namespace

// The rounded size decides, here and in the destructor: rounding may bring a size from below kHugePage up to it.
Region::Region(std::size_t bytes) : size_(round_up(bytes, kAlignment)) {
  if (size_ >= kHugePage) {
    size_ = round_up(size_, kHugePage);
    data_ = map_aligned(size_, kHugePage);
  } else {
    data_ = static_cast<std::byte*>(::operator new(size_, std::align_val_t{kAlignment}));
  }
}

Region::~Region() {
  if (size_ >= kHugePage) {
    munmap(data_, size_);
  } else {
    ::operator delete(data_, std::align_val_t{kAlignment});
  }
}

}  // namespace ringlet::memory
