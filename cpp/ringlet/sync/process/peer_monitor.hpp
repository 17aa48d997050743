// One thread per process that sleeps until another process ends or sends something.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace ringlet::sync {

enum class Ending {
  kExited,  // its pidfd is readable: see Pidfd::how_it_ended
  kHungUp,  // its end of the socket is closed; it ended (no pidfd), or runs on without the socket, as after an exec
};

// Callbacks for the events of one process. Both run on the monitor's thread, one at a time for all processes, so they
// must be short. They must not throw, and must not wait for a lock that is held while a MonitoredPeer is ended.
struct PeerCallbacks {
  // Called when the socket is readable; must read all messages with MSG_DONTWAIT. Called again while messages are left,
  // and once more before on_end, so that the last messages precede it; never after on_end.
  std::function<void()> on_message;
  // Called at most once.
  std::function<void(Ending)> on_end;
};

// A process that the thread watches during the life of this object. A child of fork() has neither the thread nor the
// sockets: an empty file replaces each descriptor until its owner closes it, there are no more callbacks, and an
// inherited MonitoredPeer does nothing.
class MonitoredPeer {
 public:
  MonitoredPeer() noexcept = default;
  MonitoredPeer(MonitoredPeer&& other) noexcept = default;
  MonitoredPeer& operator=(MonitoredPeer&& other) noexcept;
  ~MonitoredPeer() { end(); }

  // After this, no callback runs, except one that calls this function. Must be called before the descriptors are
  // closed.
  void end() noexcept;

  struct Entry;

 private:
  friend MonitoredPeer monitor_peer(int socket_fd, int pidfd, PeerCallbacks calls);
  explicit MonitoredPeer(std::shared_ptr<Entry> entry) noexcept;
  std::shared_ptr<Entry> entry_;
};

// Watches a connected socket, and the pidfd of the process at its other end (-1 for none). The caller owns both. Throws
// std::system_error if the system has no descriptor or thread left. The thread starts with the first MonitoredPeer and
// ends with the last.
MonitoredPeer monitor_peer(int socket_fd, int pidfd, PeerCallbacks calls);

// The time in which a process with a pidfd must end after its socket closed; otherwise it counts as kHungUp. A process
// that dies closes its sockets shortly before its pidfd becomes readable.
inline constexpr int kHangUpGraceMs = 500;

}  // namespace ringlet::sync
