// Handle of another process of this host: liveness and exit status.
#pragma once

#include <cstdint>
#include <string>

namespace ringlet::sync {

// A file descriptor that is closed with its object.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}  // takes ownership of `fd`; -1 for none
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;  // the caller closes it
  void close() noexcept;

 private:
  int fd_ = -1;
};

// A handle that denotes the same process even after its pid is reused.
class Pidfd {
 public:
  Pidfd() noexcept = default;  // denotes no process, which never ends
  Pidfd(int fd, int pid);      // takes ownership of `fd`; -1 if the system has none: `pid` is then only a name
  static Pidfd open(int pid);  // throws std::system_error if the process does not exist or the system has no pidfds

  int fd() const noexcept { return descriptor_.get(); }  // readable once the process has ended
  int pid() const noexcept { return pid_; }
  bool has_ended() const noexcept;  // false without a pidfd

  // Text that completes "rank 2 (pid 812 on HOST) ...": "was killed by SIGKILL (signal 9)", "exited with status 3",
  // "ended; the system does not tell how". Must be called soon after the end: older systems report it only until the
  // parent has reaped the process.
  std::string how_it_ended() const;

 private:
  Descriptor descriptor_;
  int pid_ = -1;
  std::uint64_t oom_kills_before_ = 0;
};

// A process identified by its pid and start time: needs no handle, but the process must be alive at construction.
class LivingProcess {
 public:
  LivingProcess() noexcept = default;  // denotes no process, which never ends
  explicit LivingProcess(int pid);

  // Whether all threads of the process have ended; false if the system does not report it.
  bool has_ended() const;

 private:
  int pid_ = -1;
  std::uint32_t started_at_ = 0;  // the low bits, which repeat after a year; 0 if unknown
};

// Identifies the PID namespace: processes with equal values can look up each other's pids; 0 if the system does not
// report it.
std::uint64_t pid_namespace() noexcept;

// Sends a signal; false if the process has ended or belongs to another user.
bool send_signal(int pid, int signal) noexcept;

// Return whether a process is stopped by SIGSTOP or a debugger: it does nothing until it is continued.
bool is_stopped(int pid);
// Whether the first thread of a process is in uninterruptible sleep: while it reads from a disk, or waits for memory
// that was swapped out.
bool sleeps_uninterruptibly(int pid);
// Whether the system writes the core dump of a process that has crashed.
bool is_dumping_core(int pid);

}  // namespace ringlet::sync
