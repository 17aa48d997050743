#include "ringlet/memory/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "ringlet/core/error.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace ringlet::memory {

#if defined(__linux__)

namespace {

#if !defined(MFD_NOEXEC_SEAL)
constexpr unsigned kNoExec = 0x0008U;  // Linux 6.3
#else
constexpr unsigned kNoExec = MFD_NOEXEC_SEAL;
#endif
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t free_bytes() {
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  return pages < 0 ? 0 : static_cast<std::size_t>(pages) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

[[noreturn]] void fail(const char* what, std::size_t wanted, const char* hint, int number = errno) {
  const std::size_t free = free_bytes();
  throw core::SharedMemoryError("cannot " + std::string(what) + " " + std::to_string(wanted) +
                                    " bytes of shared memory (memfd): " + std::strerror(number) + "; " +
                                    std::to_string(free) + " bytes are free. " + hint,
                                number, wanted, free, "memfd");
}

constexpr const char* kMakeRoom = "Use smaller arrays, or allow the processes of this job more memory.";
constexpr const char* kAllowMore =
    "Check the limits of this process (ulimit -n, -v, -f) and the restrictions of its sandbox.";

int create_file() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create("ringlet", kFlags | kNoExec);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("ringlet", kFlags);
}

// Whether a file may have this size: growing it beyond RLIMIT_FSIZE raises a signal that ends the process.
bool is_within_file_limit(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

// The memory available without invoking the OOM killer; the maximum if the system does not report it.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    if (std::size_t kibibytes = 0; word == "MemAvailable:" && file >> kibibytes) return kibibytes << 10;
  }
  return SIZE_MAX;
}

struct stat status_of(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) status.st_size = -1;
  return status;
}

}  // namespace

Segment Segment::create(std::size_t bytes) {
  const int fd = create_file();
  if (fd < 0) fail("create a file for", bytes, kAllowMore);
  return create_in(fd, bytes);
}

Segment Segment::create_in(int fd, std::size_t bytes) {
  Segment segment(fd, bytes);
  if (!is_within_file_limit(bytes)) fail("create a file of", bytes, kAllowMore, EFBIG);
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail("create a file of", bytes, kMakeRoom);
  if (fcntl(fd, F_ADD_SEALS, kSeals) != 0) fail("seal a file of", bytes, kAllowMore);
  segment.map();
  return segment;
}

Segment Segment::attach(int fd, std::size_t bytes) {
  Segment segment(fd, bytes);
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || status_of(fd).st_size != static_cast<off_t>(bytes)) {
    fail("use a file of", bytes, "Another process passed a file that can change its size, which is not safe to map.",
         EPERM);
  }
  segment.map();
  return segment;
}

Segment Segment::attach(int fd) {
  return attach(fd, static_cast<std::size_t>(std::max<off_t>(status_of(fd).st_size, 0)));
}

void Segment::map() {
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) fail("map", size_, kAllowMore);
  data_ = static_cast<std::byte*>(mapped);
}

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, size_);
  close_descriptor();
}

void Segment::reserve(std::size_t offset, std::size_t bytes) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;  // for less, the query takes longer than reserving
  if (bytes == 0) return;
  if (bytes >= kLarge && bytes > available_bytes()) fail("reserve", bytes, kMakeRoom, ENOMEM);
  // Reserves in pieces that become smaller after each signal: the system may undo an interrupted piece, so frequent
  // signals of a timer could prevent a large piece from ever completing.
  constexpr std::size_t kSmallestPiece = std::size_t{256} << 10;
  std::size_t piece = kLarge;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t size = std::min(piece, bytes - done);
    if (fallocate(fd_, 0, static_cast<off_t>(offset + done), static_cast<off_t>(size)) == 0) {
      done += size;
    } else if (errno == EINTR) {
      piece = std::max(piece / 2, kSmallestPiece);
    } else {
      fail("reserve", bytes, kMakeRoom);
    }
  }
}

std::size_t Segment::reserved_bytes() const noexcept {
  constexpr std::size_t kUnit = 512;  // unit of st_blocks on every file system
  return static_cast<std::size_t>(status_of(fd_).st_blocks) * kUnit;
}

void Segment::release(std::size_t offset, std::size_t bytes) noexcept {
  (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes));
}

void Segment::populate(std::size_t offset, std::size_t bytes) noexcept {
#if !defined(MADV_POPULATE_WRITE)
  constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif
  (void)madvise(data_ + offset, bytes, MADV_POPULATE_WRITE);
}

void Segment::close_descriptor() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

#else

namespace {

[[noreturn]] void refuse(std::size_t bytes) {
  throw core::SharedMemoryError("processes require Linux: this system has no anonymous sealed files.", ENOSYS, bytes, 0,
                                "memfd");
}

}  // namespace

Segment Segment::create(std::size_t bytes) { refuse(bytes); }
Segment Segment::create_in(int, std::size_t bytes) { refuse(bytes); }
Segment Segment::attach(int, std::size_t bytes) { refuse(bytes); }
Segment Segment::attach(int) { refuse(0); }
void Segment::map() {}
Segment::~Segment() = default;
void Segment::reserve(std::size_t, std::size_t) {}
std::size_t Segment::reserved_bytes() const noexcept { return 0; }
void Segment::release(std::size_t, std::size_t) noexcept {}
void Segment::populate(std::size_t, std::size_t) noexcept {}
void Segment::close_descriptor() noexcept {}

#endif

}  // namespace ringlet::memory
