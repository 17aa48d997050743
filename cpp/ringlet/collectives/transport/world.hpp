// The processes of one host that share groups.
//
// Each has an index and a socket to every other process. Shared data is in segments of their shared heaps: before a
// process first names an address in one of its segments, it sends the segment to all others. Segments stay mapped as
// long as the World exists, so access to a reachable address needs no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringlet/collectives/transport/buffer_name.hpp"
#include "ringlet/collectives/transport/cma.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/collectives/transport/messages.hpp"
#include "ringlet/memory/segment.hpp"
#include "ringlet/sync/append_only.hpp"
#include "ringlet/sync/process/peer_monitor.hpp"
#include "ringlet/sync/process/process.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

class Group;

// When to give up the creation of a group.
struct JoinLimit {
  sync::Clock::time_point end;
  sync::Clock::duration asked;  // the original time-out, for messages

  static JoinLimit after(sync::Clock::duration remaining, sync::Clock::duration asked) {
    return {remaining == sync::kForever ? sync::Clock::time_point::max() : sync::Clock::now() + remaining, asked};
  }
};

struct ProcessInfo {
  std::vector<int> ranks;  // numbered in the whole world
  int pid = -1;
  std::string host;
  int socket_fd = -1;  // takes ownership; -1 for this process
  int pidfd = -1;      // the same; -1 if the system has no pidfds
};

class World : public std::enable_shared_from_this<World> {
 public:
  using Clock = sync::Clock;

  // `token` is the same in all processes of a world and in no other. With may_use_cma, private memory is read across
  // processes if the system allows it for all of them.
  World(int index, std::vector<ProcessInfo> processes, std::string token, bool may_use_cma = true);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  int index() const noexcept { return index_; }
  int num_processes() const noexcept { return static_cast<int>(peers_.size()); }
  int num_ranks() const noexcept { return static_cast<int>(process_of_.size()); }
  int process_of(int rank) const noexcept { return process_of_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& ranks_of(int process) const noexcept { return info(process).ranks; }
  int pid_of(int process) const noexcept { return info(process).pid; }
  const std::string& host_of(int process) const noexcept { return info(process).host; }
  std::string name_of(int process) const;         // lists its ranks
  std::string whereabouts_of(int process) const;  // lists its ranks, pid and host
  // Whether the end of a process has been detected: it no longer accesses memory.
  bool is_gone(int process) const noexcept { return is_gone_[static_cast<std::size_t>(process)].is_set(); }
  // Whether a process is connected, by a system call: false after it has ended or closed its socket, as by exec.
  bool is_connected(int process) const noexcept;

  // Exchanges hello messages with all other processes and starts to monitor them. Must be called once. Throws
  // core::DeadlineError, or core::WorkerLostError if a process ends. `poll` may end a wait, here and below.
  void rendezvous(const JoinLimit& limit, sync::Poll* poll = nullptr);
  // Sends all other processes a leave message with the reason, "was interrupted", and closes the connections.
  void leave(std::string_view reason) noexcept;
  // The number of cores that the processes together may keep busy.
  int cores() const noexcept { return cores_; }
  bool can_use_cma() const noexcept { return can_use_cma_; }

  // Names an address of this process. All other processes can then reach it if it is in shared memory.
  BufferName buffer_name_of(const void* address, sync::Poll* poll = nullptr);
  // buffer_name_of() from the local table only: memory that has not been shared yet counts as private.
  BufferName known_buffer_name_of(const void* address) const noexcept;
  // Address of a shared buffer in this process. May wait to receive its segment: throws core::AbortedError if that
  // fails.
  std::byte* address_of(BufferName place, sync::Poll* poll = nullptr);

  // A new block in the shared memory of this process.
  memory::Block allocate(std::size_t bytes) { return allocate_shared(bytes, reclaim_policy_); }
  const std::shared_ptr<ProcessReclaimPolicy>& reclaim_policy() const noexcept { return reclaim_policy_; }
  // Takes a hold that the owner of the named block has added for this process.
  memory::Block take_hold(BufferName place, sync::Poll* poll = nullptr);

  CmaResult read(int process, BufferName place, std::size_t bytes, void* to) const noexcept {
    return cma_read(pid_of(process), place.bits(), bytes, to);
  }

  // Sends the name of a group's control block from process 0 to all others.
  void send_control(BufferName place, sync::Poll* poll = nullptr);
  BufferName receive_control(const JoinLimit& limit, sync::Poll* poll = nullptr);

  // The groups to notify when a process ends. A subgroup is removed after its parent, or drops its pointer to it.
  void add(Group& group);
  void remove(Group& group) noexcept;
  // Fails each group whose parent has failed.
  void look() noexcept;
  // Asks all other processes what their ranks execute: see Group::answer.
  void ask_for_stacks() noexcept { notify_all(Subject::kStacks); }
  // Makes all processes check which groups have failed.
  void spread_failure() noexcept { notify_all(Subject::kLook); }

 private:
  struct Range {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    BufferName name;
  };
  struct Peer {
    explicit Peer(ProcessInfo known) : info(std::move(known)), segments(memory::SharedHeap::kMostSegments) {}
    ProcessInfo info;
    MessageSocket message_socket;
    sync::Pidfd pidfd;
    sync::PointerTable<std::byte> segments;  // their start addresses; for this process, of sent segments only
    Message hello;
    bool has_greeted = false;
    bool has_judged = false;
    bool can_read_all = false;
    std::string farewell;          // why the process left before the group was made; guarded by messages_mutex_
    sync::MonitoredPeer watching;  // destroyed first
  };

  const ProcessInfo& info(int process) const noexcept { return peers_[static_cast<std::size_t>(process)]->info; }
  Peer& peer(int process) noexcept { return *peers_[static_cast<std::size_t>(process)]; }
  bool is_other(int process) const noexcept { return process != index_; }

  void greet(sync::Poll* poll);
  bool try_all_memories();
  template <class Ready>
  void wait_for_all(const JoinLimit& limit, sync::Poll* poll, Ready&& is_ready);
  void send_to_all(const Message& message, sync::Poll* poll, int descriptor = -1);
  void send(int process, const Message& message, sync::Poll* poll, int descriptor = -1);
  void notify(int process, const Message& message) noexcept;
  void notify_all(Subject subject) noexcept;
  void answer_about_stacks() noexcept;
  void describe_ranks() noexcept;
  void send_segment(std::uint32_t segment, sync::Poll* poll);
  void receive_from(int process);
  void handle(int process, ReceivedMessage received);
  void take_segment(int process, ReceivedMessage received);
  void watch(int process);
  void on_end(int process, sync::Ending how) noexcept;
  std::string reason_of_leaving(int process, sync::Poll* poll);
  [[noreturn]] void raise_lost(int process, const std::string& reason) const;

  int index_;
  std::string token_;
  bool may_use_cma_;
  bool can_use_cma_ = false;
  int cores_ = 1;
  std::uint64_t generation_;
  std::vector<int> process_of_;
  std::vector<sync::Flag> is_gone_;
  std::shared_ptr<ProcessReclaimPolicy> reclaim_policy_;
  std::shared_ptr<std::deque<memory::Segment>> mappings_;  // mappings of other processes' segments
  std::uint64_t probe_;                                    // read by other processes as a trial
  std::once_flag rendezvous_once_;

  std::mutex messages_mutex_;  // guards sends and receives on the sockets; never held while waiting
  std::string segment_problem_;
  std::deque<BufferName> controls_;
  sync::AppendOnly<Range> ranges_;  // all segments that can be named or reached

  std::mutex groups_mutex_;
  std::vector<Group*> groups_;
  // Ended processes, in order, and how they ended; guarded by groups_mutex_.
  std::vector<std::pair<int, std::string>> ended_;

  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace ringlet::collectives
