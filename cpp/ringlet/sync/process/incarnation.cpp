#include "ringlet/sync/process/incarnation.hpp"

#include <unistd.h>

#include <string>

#include "ringlet/sync/process/fork.hpp"
#include "ringlet/sync/process/process.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#endif

namespace ringlet::sync {

namespace {

#if defined(__linux__)

constexpr std::size_t kMappedBytes = 1;  // one page, never accessed

struct flock lock_of(std::uint32_t number) noexcept {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(number);
  lock.l_len = 1;
  return lock;
}

// Null if the system does not allow it.
void* map_locked(int file, std::uint32_t number) {
  const Descriptor own(open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = lock_of(number);
  if (!own || fcntl(own.get(), F_OFD_SETLK, &lock) != 0) return nullptr;
  void* const mapping = mmap(nullptr, kMappedBytes, PROT_NONE, MAP_SHARED, own.get(), 0);
  if (mapping == MAP_FAILED) return nullptr;
  if (madvise(mapping, kMappedBytes, MADV_DONTFORK) == 0) return mapping;
  munmap(mapping, kMappedBytes);
  return nullptr;
}

void unmap(void* mapping) noexcept { munmap(mapping, kMappedBytes); }

bool is_locked(int file, std::uint32_t number) noexcept {
  struct flock lock = lock_of(number);
  return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

#else

void* map_locked(int, std::uint32_t) { return nullptr; }
void unmap(void*) noexcept {}
bool is_locked(int, std::uint32_t) noexcept { return true; }

#endif

}  // namespace

Incarnation::Incarnation(int file, Tally& numbers)
    : code_(static_cast<std::uint64_t>(getpid()) << 32), generation_(fork_generation()) {
  const auto number = static_cast<std::uint32_t>(numbers.add());
  mapping_ = number == 0 ? nullptr : map_locked(file, number);
  if (mapping_ != nullptr) code_ |= number;
}

Incarnation::~Incarnation() {
  if (mapping_ != nullptr && is_of_this_process()) unmap(mapping_);
}

bool Incarnation::is_of_this_process() const noexcept { return generation_ == fork_generation(); }

bool Incarnation::has_ended(int file, std::uint64_t code) {
  const auto number = static_cast<std::uint32_t>(code);
  return number == 0 ? LivingProcess(pid_of(code)).has_ended() : !is_locked(file, number);
}

std::uint64_t OwnIncarnations::add(const Node* before, int file, Tally& numbers) {
  auto node = std::make_unique<Node>(file, numbers);
  const std::uint64_t code = node->incarnation.code();
  node->before.reset(before);
  if (newest_.compare_exchange_strong(before, node.get())) {
    node.release();
    return code;
  }
  node->before.release();
  return own_code(file, numbers);  // another thread has added it meanwhile
}

}  // namespace ringlet::sync
