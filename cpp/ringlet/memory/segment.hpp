// Memory that several processes map.
#pragma once

#include <cstddef>
#include <utility>

namespace ringlet::memory {

// An unnamed file of sealed size, and its mapping. The system frees it with its last descriptor and mapping, however
// their owners end. It takes memory only where some was reserved: access to any other place is an error, which may end
// the process if no memory is left.
class Segment {
 public:
  // Of `bytes` bytes, none of them reserved. Throws core::SharedMemoryError.
  static Segment create(std::size_t bytes);
  // Maps what another process created, and takes `fd` over. Throws core::SharedMemoryError, also if the file is not
  // what create() makes: one that can be cut short under its readers would end them.
  static Segment attach(int fd, std::size_t bytes);
  static Segment attach(int fd);  // of whatever size it has

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

  // Gets memory for a range, filled with zeros where there was none. Throws core::SharedMemoryError.
  void reserve(std::size_t offset, std::size_t bytes);
  // For how much of it there is memory, of whatever parts.
  std::size_t reserved_bytes() const noexcept;
  // Releases it. The range must not be used until it is reserved again.
  void release(std::size_t offset, std::size_t bytes) noexcept;
  // Maps every page of a range now, where the system can: else the first touch of each costs a fault.
  void populate(std::size_t offset, std::size_t bytes) noexcept;
  // Closes the descriptor; the mapping stays.
  void close_descriptor() noexcept;
  // The same, and the caller closes it.
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
