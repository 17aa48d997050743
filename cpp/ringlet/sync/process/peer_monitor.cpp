#include "ringlet/sync/process/peer_monitor.hpp"

#include <stdexcept>
#include <utility>

#if defined(__linux__)
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "ringlet/sync/process/fork.hpp"
#include "ringlet/sync/process/process.hpp"
#endif

namespace ringlet::sync {

#if defined(__linux__)

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

// Replaces a socket in a forked child, which must not keep the connection to the other side open.
void replace_by(int empty_fd, int fd) {
  if (fd >= 0) dup3(empty_fd, fd, O_CLOEXEC);
}

}  // namespace

struct MonitoredPeer::Entry {
  std::uint64_t id = 0;
  int socket_fd = -1;
  int pidfd = -1;
  PeerCallbacks calls;
  std::optional<Clock::time_point> hung_up_at;  // this and the next: used by the monitor's thread only
  bool is_over = false;                         // on_end has been called
  std::uint64_t generation = fork_generation();
};

namespace {

using Entry = MonitoredPeer::Entry;

class PeerMonitor {
 public:
  // Never destroyed: its thread may still be asleep during the destruction of other objects.
  static PeerMonitor& instance();

  void add(const std::shared_ptr<Entry>& entry);
  void remove(const Entry& entry) noexcept;

 private:
  static void before_fork() { instance().mutex_.lock(); }
  static void in_parent() { instance().mutex_.unlock(); }
  static void in_child();

  void start_thread();
  void join_interest(int fd, std::uint64_t tag, std::uint32_t events);
  void leave_interest(int fd) noexcept;
  bool is_watched(std::uint64_t id);
  int milliseconds_to_wait();
  void run() noexcept;
  bool finish_if_idle();
  void handle(std::uint64_t id, const std::function<void(Entry&)>& what);
  void on_socket(Entry& entry, bool is_closed);
  void end(Entry& entry, Ending how);
  void end_hung_up();

  std::mutex mutex_;  // guards all members below; not held during a callback
  std::condition_variable call_done_;
  std::map<std::uint64_t, std::shared_ptr<Entry>> entries_;
  std::uint64_t last_id_ = 0;
  std::uint64_t running_id_ = 0;  // the entry whose callback is running
  bool has_thread_ = false;
  std::thread::id thread_id_;
  Descriptor epoll_;
  Descriptor wake_;  // an eventfd; also replaces sockets in forked children
};

constexpr std::uint64_t kPidfdTag = 1;  // tags are 2 * id, plus this for the pidfd

PeerMonitor& PeerMonitor::instance() {
  static PeerMonitor& monitor = *[] {
    pthread_atfork(before_fork, in_parent, in_child);
    return std::make_unique<PeerMonitor>().release();
  }();
  return monitor;
}

void PeerMonitor::in_child() {
  PeerMonitor& monitor = instance();
  for (const auto& [id, entry] : monitor.entries_) replace_by(monitor.wake_.get(), entry->socket_fd);
  monitor.entries_.clear();
  monitor.running_id_ = 0;
  monitor.has_thread_ = false;
  monitor.epoll_.close();  // shared with the parent: the child must not change its interests
  monitor.wake_.close();
  monitor.mutex_.unlock();
}

void PeerMonitor::join_interest(int fd, std::uint64_t tag, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void PeerMonitor::leave_interest(int fd) noexcept {
  if (fd >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// Called with the mutex held.
void PeerMonitor::start_thread() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) fail("epoll_create1");
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) fail("eventfd");
  join_interest(wake_.get(), 0, EPOLLIN);
  // Signals are for the program's own threads; only signals for faults of this thread stay unblocked.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  try {
    std::thread thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "ringlet-watch");
    thread_id_ = thread.get_id();
    thread.detach();
    has_thread_ = true;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PeerMonitor::add(const std::shared_ptr<Entry>& entry) {
  const std::lock_guard lock(mutex_);
  if (!has_thread_) start_thread();
  entry->id = ++last_id_;
  entries_.emplace(entry->id, entry);
  try {
    join_interest(entry->socket_fd, 2 * entry->id, EPOLLIN | EPOLLRDHUP);
    if (entry->pidfd >= 0) join_interest(entry->pidfd, 2 * entry->id + kPidfdTag, EPOLLIN);
  } catch (...) {
    leave_interest(entry->socket_fd);
    entries_.erase(entry->id);
    if (entries_.empty()) eventfd_write(wake_.get(), 1);
    throw;
  }
}

void PeerMonitor::remove(const Entry& entry) noexcept {
  std::unique_lock lock(mutex_);
  if (entry.generation != fork_generation()) return;
  if (entries_.erase(entry.id) == 0) return;
  leave_interest(entry.socket_fd);
  leave_interest(entry.pidfd);
  // From within a callback, it returns immediately: that callback is the last.
  if (std::this_thread::get_id() != thread_id_) {
    call_done_.wait(lock, [&] { return running_id_ != entry.id; });
  }
  if (entries_.empty() && has_thread_) eventfd_write(wake_.get(), 1);
}

bool PeerMonitor::is_watched(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return entries_.contains(id);
}

// The time for which epoll may sleep: until the first grace period of a peer with a closed socket ends.
int PeerMonitor::milliseconds_to_wait() {
  const std::lock_guard lock(mutex_);
  int milliseconds = -1;
  for (const auto& [id, entry] : entries_) {
    if (!entry->hung_up_at) continue;
    const auto remaining = *entry->hung_up_at + std::chrono::milliseconds(kHangUpGraceMs) - Clock::now();
    const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(remaining).count();
    const int needed = static_cast<int>(std::clamp<std::int64_t>(rounded_up, 0, kHangUpGraceMs));
    milliseconds = milliseconds < 0 ? needed : std::min(milliseconds, needed);
  }
  return milliseconds;
}

// Runs `what` for an entry that is still watched; remove() waits for it.
void PeerMonitor::handle(std::uint64_t id, const std::function<void(Entry&)>& what) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    entry = found->second;
    running_id_ = id;
  }
  if (!entry->is_over) what(*entry);  // otherwise the event is from the same batch as the end
  entry.reset();  // before remove() continues: its caller is then the only owner of the callbacks' data
  const std::lock_guard lock(mutex_);
  running_id_ = 0;
  call_done_.notify_all();
}

void PeerMonitor::end(Entry& entry, Ending how) {
  {
    const std::lock_guard lock(mutex_);
    leave_interest(entry.socket_fd);
    leave_interest(entry.pidfd);
  }
  entry.hung_up_at.reset();
  entry.is_over = true;
  entry.calls.on_message();
  if (is_watched(entry.id)) entry.calls.on_end(how);
}

void PeerMonitor::on_socket(Entry& entry, bool is_closed) {
  if (!is_closed) return entry.calls.on_message();
  if (entry.pidfd < 0) return end(entry, Ending::kHungUp);
  {
    const std::lock_guard lock(mutex_);
    leave_interest(entry.socket_fd);  // the socket would stay readable for ever
  }
  entry.hung_up_at = Clock::now();
  entry.calls.on_message();
}

void PeerMonitor::end_hung_up() {
  std::array<std::uint64_t, 64> over{};
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (!entry->hung_up_at || count == over.size()) continue;
      if (Clock::now() >= *entry->hung_up_at + std::chrono::milliseconds(kHangUpGraceMs)) over[count++] = id;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    handle(over[i], [&](Entry& entry) { end(entry, Ending::kHungUp); });
  }
}

bool PeerMonitor::finish_if_idle() {
  const std::lock_guard lock(mutex_);
  if (!entries_.empty()) return false;
  has_thread_ = false;
  thread_id_ = {};
  epoll_.close();
  wake_.close();
  return true;
}

void PeerMonitor::run() noexcept {
  std::array<epoll_event, 16> events;
  const int epoll_fd = [&] {
    const std::lock_guard lock(mutex_);  // waits until start_thread has returned
    return epoll_.get();
  }();
  for (;;) {
    const int count = epoll_wait(epoll_fd, events.data(), static_cast<int>(events.size()), milliseconds_to_wait());
    for (int i = 0; i < count; ++i) {
      const epoll_event event = events[static_cast<std::size_t>(i)];
      const std::uint64_t tag = event.data.u64;
      if (tag == 0) {
        if (finish_if_idle()) return;
        eventfd_t wakes = 0;
        eventfd_read(wake_.get(), &wakes);
      } else if (tag % 2 == kPidfdTag) {
        handle(tag / 2, [&](Entry& entry) { end(entry, Ending::kExited); });
      } else {
        const bool is_closed = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        handle(tag / 2, [&](Entry& entry) { on_socket(entry, is_closed); });
      }
    }
    end_hung_up();
  }
}

}  // namespace

MonitoredPeer monitor_peer(int socket_fd, int pidfd, PeerCallbacks calls) {
  const auto entry = std::make_shared<Entry>();
  entry->socket_fd = socket_fd;
  entry->pidfd = pidfd;
  entry->calls = std::move(calls);
  PeerMonitor::instance().add(entry);
  return MonitoredPeer(entry);
}

void MonitoredPeer::end() noexcept {
  if (!entry_) return;
  PeerMonitor::instance().remove(*entry_);
  entry_.reset();
}

#else

struct MonitoredPeer::Entry {};

MonitoredPeer monitor_peer(int, int, PeerCallbacks) { throw std::runtime_error("groups of processes require Linux"); }

void MonitoredPeer::end() noexcept { entry_.reset(); }

#endif

MonitoredPeer::MonitoredPeer(std::shared_ptr<Entry> entry) noexcept : entry_(std::move(entry)) {}

MonitoredPeer& MonitoredPeer::operator=(MonitoredPeer&& other) noexcept {
  if (this != &other) {
    end();
    entry_ = std::move(other.entry_);
  }
  return *this;
}

}  // namespace ringlet::sync
