#include "ringlet/sync/process/process.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>

#if defined(__linux__)
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#endif

namespace ringlet::sync {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(release());
}

bool send_signal(int pid, int signal) noexcept { return ::kill(pid, signal) == 0; }

#if defined(__linux__)

namespace {

#ifndef SYS_pidfd_send_signal
constexpr long SYS_pidfd_send_signal = 424;
#endif
#ifndef SYS_pidfd_open
constexpr long SYS_pidfd_open = 434;
#endif
constexpr auto kByPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which older headers lack

// From linux/pidfd.h of Linux 6.15: the first 64 bytes that PIDFD_GET_INFO fills in.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup_id;
  std::uint32_t ids[11];  // pid, tgid, ppid and the eight user and group ids
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1U << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

std::string read_file(const std::string& path) {
  std::string text;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while (file && (count = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

// The number after `word` and a blank at the start of a line.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(word) && line.size() > word.size() + 1 && line[word.size()] == ' ') {
      std::uint64_t number = 0;
      for (const char digit : line.substr(word.size() + 1)) {
        number = number * 10 + static_cast<std::uint64_t>(digit - '0');
      }
      return number;
    }
    if (text.find('\n', at) == std::string_view::npos) break;
  }
  return std::nullopt;
}

// The number of processes that the out-of-memory killer has ended in the control group of this process (version 2, then
// 1), else on this host.
std::uint64_t oom_kills() {
  const std::string groups = read_file("/proc/self/cgroup");
  std::string own;
  if (const std::size_t at = groups.find("0::"); at != std::string::npos) {
    own = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  }
  for (const std::string& path :
       {"/sys/fs/cgroup" + own + "/memory.events", std::string("/sys/fs/cgroup/memory.events"),
        std::string("/sys/fs/cgroup/memory/memory.oom_control"), std::string("/proc/vmstat")}) {
    if (const auto count = number_after(read_file(path), "oom_kill")) return *count;
  }
  return 0;
}

// The status, as from wait(), of an ended child that has not been reaped yet.
std::optional<int> status_of_own_child(int fd) {
  siginfo_t info{};
  if (waitid(kByPidfd, static_cast<id_t>(fd), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return info.si_status << 8;
  return info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}

struct Stat {
  char state;  // R, S, D, Z, T or t, ...
  std::string text;
};

std::optional<Stat> stat_of(int pid) {
  std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || text.size() < name_end + 3) return std::nullopt;
  return Stat{text[name_end + 2], std::move(text)};
}

// The last field of /proc/PID/stat, if `pid` still denotes the process of `fd`.
std::optional<int> status_of_zombie(int fd, int pid) {
  const std::optional<Stat> stat = stat_of(pid);
  if (!stat || stat->state != 'Z') return std::nullopt;
  if (syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0) != 0)
    return std::nullopt;  // its parent has reaped it meanwhile
  const std::size_t last = stat->text.find_last_of(' ');
  return std::atoi(stat->text.c_str() + last + 1);
}

// The exit status that newer systems keep for holders of a pidfd after the parent has reaped the process.
std::optional<int> status_kept(int fd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (ioctl(fd, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

std::optional<int> status_of(int fd, int pid) {
  // Twice, because the parent may reap the process between the second query and the third.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const auto status = status_of_own_child(fd)) return status;
    if (const auto status = status_of_zombie(fd, pid)) return status;
    if (const auto status = status_kept(fd)) return status;
  }
  return std::nullopt;
}

std::string name_of(int signal) {
  constexpr std::array<std::pair<int, const char*>, 20> kNames{{
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},     {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"},
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},       {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},
      {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},     {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
      {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGSYS, "SIGSYS"},
  }};
  const std::string number = "signal " + std::to_string(signal);
  for (const auto& [value, name] : kNames) {
    if (value == signal) return std::string(name) + " (" + number + ")";
  }
  return number;
}

}  // namespace

Pidfd::Pidfd(int fd, int pid) : descriptor_(fd), pid_(pid), oom_kills_before_(oom_kills()) {}

Pidfd Pidfd::open(int pid) {
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open of pid " + std::to_string(pid));
  return Pidfd(static_cast<int>(fd), pid);
}

bool Pidfd::has_ended() const noexcept {
  if (!descriptor_) return false;
  pollfd entry{.fd = fd(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

std::string Pidfd::how_it_ended() const {
  const std::optional<int> status = descriptor_ ? status_of(fd(), pid_) : std::nullopt;
  if (!status) return "ended; the system does not report how";
  if (WIFEXITED(*status)) return "exited with status " + std::to_string(WEXITSTATUS(*status));
  const int signal = WTERMSIG(*status);
  std::string text = "was killed by " + name_of(signal);
  if (signal == SIGKILL && oom_kills() > oom_kills_before_) {
    text += ", and the kernel's out-of-memory killer was active meanwhile: memory may have run out";
  }
  return text;
}

namespace {

// A field of /proc/PID/stat, numbered as in its manual page: the state is field 3.
std::uint64_t field_of(const Stat& stat, int number) {
  std::size_t at = stat.text.rfind(") ") + 2;
  for (int field = 3; field < number; ++field) at = stat.text.find(' ', at) + 1;
  return std::strtoull(stat.text.c_str() + at, nullptr, 10);
}

// In clock ticks.
std::uint32_t start_of(const Stat& stat) { return static_cast<std::uint32_t>(field_of(stat, 22)); }

// The first thread may have ended while other threads are still exiting.
bool has_threads(const Stat& stat) { return stat.state != 'Z' || field_of(stat, 20) > 1; }

}  // namespace

LivingProcess::LivingProcess(int pid) : pid_(pid) {
  if (const std::optional<Stat> stat = stat_of(pid)) started_at_ = start_of(*stat);
}

bool LivingProcess::has_ended() const {
  if (pid_ < 0) return false;
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  if (started_at_ == 0) return false;
  const std::optional<Stat> stat = stat_of(pid_);
  return stat && (!has_threads(*stat) || start_of(*stat) != started_at_);
}

std::uint64_t pid_namespace() noexcept {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool is_stopped(int pid) {
  const std::optional<Stat> stat = stat_of(pid);
  return stat && (stat->state == 'T' || stat->state == 't');
}

bool sleeps_uninterruptibly(int pid) {
  const std::optional<Stat> stat = stat_of(pid);
  return stat && stat->state == 'D';
}

bool is_dumping_core(int pid) {
  return read_file("/proc/" + std::to_string(pid) + "/status").find("\nCoreDumping:\t1") != std::string::npos;
}

#else

Pidfd::Pidfd(int fd, int pid) : descriptor_(fd), pid_(pid) {}
Pidfd Pidfd::open(int) { throw std::runtime_error("groups of processes require Linux"); }
bool Pidfd::has_ended() const noexcept { return false; }
std::string Pidfd::how_it_ended() const { return "ended; the system does not report how"; }
LivingProcess::LivingProcess(int pid) : pid_(pid) {}
bool LivingProcess::has_ended() const { return false; }
std::uint64_t pid_namespace() noexcept { return 0; }
bool is_stopped(int) { return false; }
bool sleeps_uninterruptibly(int) { return false; }
bool is_dumping_core(int) { return false; }

#endif

}  // namespace ringlet::sync
