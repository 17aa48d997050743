// Memory of this process.
#pragma once

#include <cstddef>

namespace ringlet::memory {

// Memory from the heap, or, from kMapped up, a mapping of its own: a heap keeps what lies below something that is still
// in use, a mapping goes back to the system at once. From kHugePage up it is aligned to huge pages, and the system is
// asked to use them.
class Region {
 public:
  static constexpr std::size_t kMapped = std::size_t{128} << 10;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kAlignment = 64;

  explicit Region(std::size_t bytes);  // throws std::bad_alloc
  // Memory owned elsewhere, which outlives this.
  Region(std::byte* data, std::size_t bytes) noexcept : data_(data), size_(bytes), is_owned_(false) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
  bool is_owned_ = true;
};

}  // namespace ringlet::memory
