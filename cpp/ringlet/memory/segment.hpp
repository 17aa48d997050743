// Memory mapped by several processes.
#pragma once

#include <cstddef>
#include <utility>

namespace ringlet::memory {

// An unnamed file of sealed size, and its mapping. The system frees it with its last descriptor and mapping, even if
// their owners crash. Only reserved ranges have memory: access to any other range is an error, which may end the
// process if no memory is left.
class Segment {
 public:
  // Creates a segment of `bytes` bytes, none of them reserved. Throws core::SharedMemoryError.
  static Segment create(std::size_t bytes);
  // Creates a segment in an empty file that can be sealed; takes ownership of `fd`. Throws if it is a segment.
  static Segment create_in(int fd, std::size_t bytes);
  // Maps a segment of another process and takes ownership of `fd`. Throws core::SharedMemoryError, also if the file
  // does not have the seals of create(): truncation of a mapped file would crash its readers.
  static Segment attach(int fd, std::size_t bytes);
  static Segment attach(int fd);  // a segment of any size

  Segment(Segment&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Segment& operator=(Segment&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Segment();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }

  // Reserves memory for a range; new memory is zero. Throws core::SharedMemoryError.
  void reserve(std::size_t offset, std::size_t bytes);
  // The total size of the reserved ranges.
  std::size_t reserved_bytes() const noexcept;
  // Releases the memory of a range. The range must not be used until it is reserved again.
  void release(std::size_t offset, std::size_t bytes) noexcept;
  // Maps every page of a range now, if the system can: otherwise the first access to each page costs a fault.
  void populate(std::size_t offset, std::size_t bytes) noexcept;
  // Closes the descriptor; the mapping stays.
  void close_descriptor() noexcept;
  // Returns the descriptor, which the caller then closes; the mapping stays.
  int release_descriptor() noexcept { return std::exchange(fd_, -1); }
  // The mapping is never removed.
  void abandon() noexcept {
    close_descriptor();
    data_ = nullptr;
  }

 private:
  Segment(int fd, std::size_t bytes) : fd_(fd), size_(bytes) {}
  void map();

  int fd_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

}  // namespace ringlet::memory
