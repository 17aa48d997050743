#include "ringlet/memory/region.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace ringlet::memory {

namespace {

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::byte* map(std::size_t bytes) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped);
}

// Maps one huge page more than asked for and unmaps what lies outside the aligned part.
std::byte* map_huge(std::size_t bytes) {
  constexpr std::size_t kAlignment = Region::kHugePage;
  if (bytes > SIZE_MAX - kAlignment) throw std::bad_alloc();
  std::byte* const begin = map(bytes + kAlignment);
  auto* const aligned =
      begin + (round_up(reinterpret_cast<std::uintptr_t>(begin), kAlignment) - reinterpret_cast<std::uintptr_t>(begin));
  const auto head = static_cast<std::size_t>(aligned - begin);
  if (head > 0) munmap(begin, head);
  if (head < kAlignment) munmap(aligned + bytes, kAlignment - head);
#if defined(MADV_HUGEPAGE)
  madvise(aligned, bytes, MADV_HUGEPAGE);  // only a hint: the memory also works without huge pages
#endif
  return aligned;
}

}  // namespace

// The rounded size determines the kind of memory, here and in the destructor: rounding may reach the next kind.
Region::Region(std::size_t bytes) : size_(round_up(bytes, kAlignment)) {
  if (size_ >= kHugePage) {
    size_ = round_up(size_, kHugePage);
    data_ = map_huge(size_);
  } else if (size_ >= kMapped) {
    data_ = map(size_);
  } else {
    data_ = static_cast<std::byte*>(::operator new(size_, std::align_val_t{kAlignment}));
  }
}

Region::~Region() {
  if (!is_owned_) return;
  if (size_ >= kMapped) {
    munmap(data_, size_);
  } else {
    ::operator delete(data_, std::align_val_t{kAlignment});
  }
}

}  // namespace ringlet::memory
