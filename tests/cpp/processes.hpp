// Processes as the homes of ranks, forked before this program starts a thread.
#pragma once

#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/sync/process/process.hpp"

namespace ringlet::stress {

// How many ranks each process has, in order, and what the system allows them.
struct Layout {
  std::vector<int> ranks;
  bool may_use_cma = true;
  bool has_pidfds = true;

  int num_processes() const { return static_cast<int>(ranks.size()); }
  int num_ranks() const { return std::accumulate(ranks.begin(), ranks.end(), 0); }
  std::vector<int> ranks_of(int process) const {
    std::vector<int> own(static_cast<std::size_t>(ranks[static_cast<std::size_t>(process)]));
    std::iota(own.begin(), own.end(), std::accumulate(ranks.begin(), ranks.begin() + process, 0));
    return own;
  }
};

inline std::int64_t nanoseconds_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

inline int count_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// What the parent and its children see.
struct Board {
  static constexpr int kMost = 16;
  std::atomic<int> pids[kMost];
  std::atomic<int> num_ready;
  std::atomic<std::int64_t> killed_at;  // nanoseconds; 0 before
  std::atomic<std::uint64_t> calls;
};

class Processes {
 public:
  explicit Processes(Layout layout) : layout_(std::move(layout)) {
    void* const shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "memory can be mapped");
    board_ = new (shared) Board{};
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const int pid : pids_) check(pid == 0, "all children have been waited for");
    munmap(board_, sizeof(Board));
  }

  const Layout& layout() const { return layout_; }
  Board& board() { return *board_; }
  int pid(int process) const { return pids_[static_cast<std::size_t>(process)]; }

  // Starts `body(process)` in each process; a child ends with status 0 when it returns.
  template <class Body>
  void start(Body&& body) {
    const int count = layout_.num_processes();
    for (int one = 0; one < count; ++one) {
      for (int other = one + 1; other < count; ++other) {
        int ends[2];
        check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "sockets can be made");
        sockets_[{one, other}] = ends[0];
        sockets_[{other, one}] = ends[1];
      }
    }
    for (int process = 0; process < count; ++process) {
      const int pid = fork();
      check(pid >= 0, "a process can be made");
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // a check that fails leaves nobody behind
        keep_sockets_of(process);
        board_->pids[process].store(getpid());
        board_->num_ready.fetch_add(1);
        while (board_->num_ready.load() < count) usleep(100);
        body(process);
        std::_Exit(0);
      }
      pids_.push_back(pid);
    }
    keep_sockets_of(-1);
  }

  // In a child: its end of the connection to another process, before its world takes that over.
  int socket(int process, int other) const { return sockets_.at({process, other}); }

  // In a child.
  std::shared_ptr<collectives::World> world(int process) {
    std::vector<collectives::ProcessInfo> infos;
    for (int other = 0; other < layout_.num_processes(); ++other) {
      collectives::ProcessInfo info;
      info.ranks = layout_.ranks_of(other);
      info.pid = board_->pids[other].load();
      info.host = "here";
      if (other != process) {
        info.socket_fd = std::exchange(sockets_[{process, other}], -1);
        // One that has ended by now has no pidfd: its socket tells.
        if (layout_.has_pidfds) {
          try {
            const sync::Pidfd pidfd = sync::Pidfd::open(info.pid);
            info.pidfd = dup(pidfd.fd());
          } catch (const std::exception&) {
          }
        }
      }
      infos.push_back(std::move(info));
    }
    return std::make_shared<collectives::World>(process, std::move(infos), "stress", layout_.may_use_cma);
  }

  void kill(int process) {
    board_->killed_at.store(nanoseconds_now());
    ::kill(pid(process), SIGKILL);
  }

  // Stops a process where it is, and lets it go on.
  void stop(int process) {
    ::kill(pid(process), SIGSTOP);
    while (!sync::is_stopped(pid(process))) usleep(100);
  }
  void go_on(int process) { ::kill(pid(process), SIGCONT); }

  // The status with which a process ended, or minus the signal. Ends it by force after `seconds`.
  int wait_for(int process, int seconds = 120) {
    int& pid = pids_[static_cast<std::size_t>(process)];
    int status = 0;
    for (int waited = 0; waitpid(pid, &status, WNOHANG) == 0; ++waited) {
      if (waited > seconds * 1000) {
        ::kill(pid, SIGABRT);
        std::cerr << "process " << process << " of " << layout_.num_processes() << " hangs" << std::endl;
        waited = 0;
      }
      usleep(1000);
    }
    pid = 0;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  void keep_sockets_of(int process) {
    for (auto& [pair, fd] : sockets_) {
      if (pair.first != process && fd >= 0) close(std::exchange(fd, -1));
    }
  }

  Layout layout_;
  Board* board_;
  std::map<std::pair<int, int>, int> sockets_;
  std::vector<int> pids_;
};

}  // namespace ringlet::stress
