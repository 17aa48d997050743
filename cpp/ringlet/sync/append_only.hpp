// Append-only containers, which readers access without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

namespace ringlet::sync {

// Written by one thread at a time, read by all. Entries beyond the count are never read; a reader that sees the count
// sees what was stored before it.
template <class T>
class AppendOnly {
 public:
  explicit AppendOnly(std::size_t capacity) : items_(std::make_unique<T[]>(capacity)), capacity_(capacity) {}

  // False if there is no room left.
  bool add(const T& item) noexcept {
    const std::size_t size = size_.load();
    if (size == capacity_) return false;
    items_[size] = item;
    size_.store(size + 1);
    return true;
  }
  std::span<const T> items() const noexcept { return {items_.get(), size_.load()}; }

 private:
  std::unique_ptr<T[]> items_;
  std::size_t capacity_;
  std::atomic<std::size_t> size_{0};
};

// Set by one thread at a time; null until set. A reader sees all writes to the target from before the pointer was set.
// A static pointer can be read until the process has ended, because it has no destructor.
template <class T>
class Pointer {
 public:
  T* get() const noexcept { return target_.load(); }
  void set(T* target) noexcept { target_.store(target); }

 private:
  std::atomic<T*> target_{nullptr};
};

// Pointers by number.
template <class T>
class PointerTable {
 public:
  explicit PointerTable(std::size_t size) : entries_(std::make_unique<Pointer<T>[]>(size)), size_(size) {}

  T* get(std::size_t index) const noexcept { return index < size_ ? entries_[index].get() : nullptr; }
  void set(std::size_t index, T* target) noexcept {
    if (index < size_) entries_[index].set(target);
  }
  std::size_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<Pointer<T>[]> entries_;
  std::size_t size_;
};

}  // namespace ringlet::sync
