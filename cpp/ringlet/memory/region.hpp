// Memory of this process.
#pragma once

#include <cstddef>

namespace ringlet::memory {

// Memory from the heap or, for sizes of kMapped and above, a separate mapping: a heap keeps freed memory below a block
// that is still in use, but a mapping returns to the system immediately. From kHugePage on, it is aligned to huge
// pages, which the system is advised to use.
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
