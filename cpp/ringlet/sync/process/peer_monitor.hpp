// One thread per process that sleeps until another process ends or sends something.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace ringlet::sync {

enum class Ending {
  kExited,  // its pidfd is readable: see Pidfd::how_it_ended
  kHungUp,  // its end of the socket is closed; it ended (no pidfd), or lives on without the socket, as after an exec
};

// Callbacks for the events of one process. Both run on the watch's thread, one at a time over all processes, so they
// must not take long; they must not throw, and must not wait for a lock that is held while a MonitoredPeer is ended.
struct PeerCallbacks {
  // The socket can be read: read all that is there with MSG_DONTWAIT. Called again as long as something is left, and
  // once more before on_end, so that what the process sent last is seen first. Never after on_end.
  std::function<void()> on_message;
  // At most once.
  std::function<void(Ending)> on_end;
};

// Something that the thread watches, as long as this lives. A child of fork() has neither the thread nor the sockets:
// the descriptors are closed there (their numbers stay taken, by an empty file, until their owner closes them), no call
// comes any more, and a MonitoredPeer that the child inherits does nothing.
class MonitoredPeer {
 public:
  MonitoredPeer() noexcept = default;
  MonitoredPeer(MonitoredPeer&& other) noexcept = default;
  MonitoredPeer& operator=(MonitoredPeer&& other) noexcept;
  ~MonitoredPeer() { end(); }

  // No call comes after this, and none is running, unless this is called from one. End it before the descriptors are
  // closed.
  void end() noexcept;

  struct Entry;

 private:
  friend MonitoredPeer monitor_peer(int socket_fd, int pidfd, PeerCallbacks calls);
  explicit MonitoredPeer(std::shared_ptr<Entry> entry) noexcept;
  std::shared_ptr<Entry> entry_;
};

// Watches a connected socket, and the pidfd of the process at its other end (-1 for none). The caller owns both.
// std::system_error if the system has no descriptor or thread left. The thread starts with the first MonitoredPeer and
// ends with the last.
MonitoredPeer monitor_peer(int socket_fd, int pidfd, PeerCallbacks calls);

// How long after its socket closed a process with a pidfd may take to end before it counts as kHungUp. A process that
// dies closes its sockets shortly before its pidfd becomes readable.
inline constexpr int kHangUpGraceMs = 500;

}  // namespace ringlet::sync
