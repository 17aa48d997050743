// Owned memory of this process.
#pragma once

#include <cstddef>
#include <utility>

namespace ringlet::memory {

// Memory from the heap, or, from kHugePage up, a mapping aligned to huge pages for which the system is asked to use
// them.
class Region {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kAlignment = 64;

  Region() = default;
  explicit Region(std::size_t bytes);  // throws std::bad_alloc
  Region(Region&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ringlet::memory
