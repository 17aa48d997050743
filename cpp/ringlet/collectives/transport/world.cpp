#include "ringlet/collectives/transport/world.hpp"

#include <bit>
#include <chrono>
#include <exception>
#include <functional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "ringlet/collectives/group/fixed_text.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kWaitMilliseconds = 20;

void run(sync::Poll* poll) {
  if (poll != nullptr) (*poll)();
}
// Maximum wait for socket space or a sent message: far longer than either takes.
constexpr std::chrono::seconds kMailLimit{30};
constexpr std::size_t kMostRanges = 4096;

}  // namespace

World::World(int index, std::vector<ProcessInfo> processes, std::string token, bool may_use_cma)
    : index_(index),
      token_(std::move(token)),
      may_use_cma_(may_use_cma),
      generation_(sync::fork_generation()),
      is_gone_(processes.size()),
      reclaim_policy_(std::make_shared<ProcessReclaimPolicy>(index, static_cast<int>(processes.size()))),
      mappings_(std::make_shared<std::deque<memory::Segment>>()),
      probe_(std::hash<std::string>()(token_) ^ static_cast<std::uint64_t>(index)),
      ranges_(kMostRanges) {
  for (ProcessInfo& process : processes) {
    auto made = std::make_unique<Peer>(std::move(process));
    made->message_socket = MessageSocket(std::exchange(made->info.socket_fd, -1));
    made->pidfd = sync::Pidfd(std::exchange(made->info.pidfd, -1), made->info.pid);
    peers_.push_back(std::move(made));
  }
  if (index < 0 || index >= num_processes() || num_processes() > BlockHeader::kMostProcesses) {
    throw core::ArgumentError("process " + std::to_string(index) + " of " + std::to_string(num_processes()) +
                              ": a group has 1 to " + std::to_string(BlockHeader::kMostProcesses) + " processes.");
  }
  memory::SharedHeap::of_this_process().set_number(index);
  ended_.reserve(peers_.size());
  std::size_t total = 0;
  for (const auto& known : peers_) total += known->info.ranks.size();
  process_of_.assign(total, -1);
  for (int process = 0; process < num_processes(); ++process) {
    for (const int rank : ranks_of(process)) {
      if (rank < 0 || static_cast<std::size_t>(rank) >= total || process_of(rank) != -1) {
        throw core::ArgumentError("rank " + std::to_string(rank) + " of process " + std::to_string(process) +
                                  ": each of the ranks 0 to " + std::to_string(total - 1) +
                                  " belongs to exactly one process.");
      }
      process_of_[static_cast<std::size_t>(rank)] = process;
    }
  }
}

World::~World() {
  for (const auto& known : peers_) known->watching.end();
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) reclaim_policy_->set_process(process, peer(process).pidfd);
  }
  reclaim_policy_->watch_alone();
  if (generation_ == sync::fork_generation()) memory::SharedHeap::of_this_process().trim();
}

std::string World::name_of(int process) const { return ranks_text(ranks_of(process)); }

std::string World::whereabouts_of(int process) const {
  return name_of(process) + " (pid " + std::to_string(pid_of(process)) + " on " + host_of(process) + ")";
}

void World::send_to_all(const Message& message, sync::Poll* poll, int descriptor) {
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) send(process, message, poll, descriptor);
  }
}

void World::send(int process, const Message& message, sync::Poll* poll, int descriptor) {
  const auto end = Clock::now() + kMailLimit;
  for (;;) {
    try {
      const std::scoped_lock lock(messages_mutex_);
      if (peer(process).message_socket.try_send(message, descriptor)) return;
    } catch (const std::system_error& error) {
      throw core::AbortedError("cannot pass shared memory to " + whereabouts_of(process) + ": " +
                               error.code().message() + ".");
    }
    if (is_gone(process)) return;
    // A peer that does not read may itself be waiting for socket space.
    for (int other = 0; other < num_processes(); ++other) {
      if (is_other(other)) receive_from(other);
    }
    peer(process).message_socket.wait(true, kWaitMilliseconds);
    run(poll);
    if (Clock::now() > end) {
      throw core::AbortedError("cannot pass shared memory to " + whereabouts_of(process) +
                               ": that process does not read its messages.");
    }
  }
}

// Any message triggers a check of which groups have failed: a full socket may have dropped the notification.
void World::receive_from(int process) {
  bool has_received = false;
  {
    const std::scoped_lock lock(messages_mutex_);
    while (auto received = peer(process).message_socket.try_receive()) {
      handle(process, std::move(*received));
      has_received = true;
    }
  }
  if (has_received) look();
}

void World::handle(int process, ReceivedMessage received) {
  Peer& sender = peer(process);
  switch (received.message.subject) {
    case Subject::kHello:
      sender.hello = received.message;
      sender.has_greeted = true;
      break;
    case Subject::kVerdict:
      sender.can_read_all = received.message.number != 0;
      sender.has_judged = true;
      break;
    case Subject::kSegment:
      take_segment(process, std::move(received));
      break;
    case Subject::kControl:
      controls_.emplace_back(received.message.words[0]);
      break;
    case Subject::kLook:
      break;
    case Subject::kLeave:
      sender.farewell.assign(reinterpret_cast<const char*>(received.message.bytes.data()), received.message.number);
      break;
    case Subject::kStacks:
      answer_about_stacks();
      break;
  }
}

// A segment that cannot be mapped is reported where it is used: see address_of.
void World::take_segment(int process, ReceivedMessage received) {
  if (received.is_cut) {
    segment_problem_ = "the shared memory of " + name_of(process) +
                       " cannot be mapped: this process has reached its limit of open files. Raise the " +
                       "limit (`ulimit -n`), or close files.";
    return;
  }
  try {
    memory::Segment segment = memory::Segment::attach(received.descriptor.release(), received.message.words[0]);
    segment.close_descriptor();
    mappings_->push_back(std::move(segment));
    const memory::Segment& mapped = mappings_->back();
    ranges_.add({mapped.data(), mapped.size(), BufferName::of_shared(process, received.message.number, 0)});
    peer(process).segments.set(received.message.number, mapped.data());
  } catch (const std::exception& error) {
    segment_problem_ = error.what();
  }
}

// --- Buffer names ----------------------------------------------------------------------------------------------------

BufferName World::known_buffer_name_of(const void* address) const noexcept {
  const auto* const wanted = static_cast<const std::byte*>(address);
  for (const Range& range : ranges_.items()) {
    if (wanted >= range.begin && wanted < range.begin + range.bytes) {
      return range.name + static_cast<std::size_t>(wanted - range.begin);
    }
  }
  return BufferName::of_private(address);
}

BufferName World::buffer_name_of(const void* address, sync::Poll* poll) {
  if (const BufferName known = known_buffer_name_of(address); known.is_shared()) return known;
  const auto found = memory::SharedHeap::of_this_process().find(address);
  if (!found.has_value()) return BufferName::of_private(address);
  send_segment(found->segment, poll);
  return BufferName::of_shared(index_, found->segment, found->offset);
}

// Two ranks of this process may send the same segment; a receiver then maps it twice and uses either mapping.
void World::send_segment(std::uint32_t index, sync::Poll* poll) {
  const memory::Segment& segment = memory::SharedHeap::of_this_process().segment(index);
  Message message;
  message.subject = Subject::kSegment;
  message.number = index;
  message.words[0] = segment.size();
  send_to_all(message, poll, segment.fd());
  const std::scoped_lock lock(messages_mutex_);
  if (peer(index_).segments.get(index) != nullptr) return;
  ranges_.add({segment.data(), segment.size(), BufferName::of_shared(index_, index, 0)});
  peer(index_).segments.set(index, segment.data());
}

// The owner sends a segment before any name in it, so the segment is in the socket if it is not in the table.
std::byte* World::address_of(BufferName place, sync::Poll* poll) {
  const auto end = Clock::now() + kMailLimit;
  for (;;) {
    if (std::byte* const begin = peer(place.process()).segments.get(place.segment()); begin != nullptr) {
      return begin + place.offset();
    }
    receive_from(place.process());
    if (peer(place.process()).segments.get(place.segment()) != nullptr) continue;
    {
      const std::scoped_lock lock(messages_mutex_);
      if (!segment_problem_.empty()) throw core::AbortedError(segment_problem_);
      if (peer(place.process()).message_socket.is_closed() || Clock::now() > end) {
        throw core::AbortedError("the shared memory of " + name_of(place.process()) +
                                 " was not received: its process has ended.");
      }
    }
    peer(place.process()).message_socket.wait(false, 1);
    run(poll);
  }
}

memory::Block World::take_hold(BufferName place, sync::Poll* poll) {
  std::byte* const data = address_of(place, poll);
  const bool is_own = place.process() == index_;
  return hold(data, index_, is_own ? nullptr : std::shared_ptr<const void>(mappings_));
}

// --- Groups ----------------------------------------------------------------------------------------------------------

void World::send_control(BufferName place, sync::Poll* poll) {
  Message message;
  message.subject = Subject::kControl;
  message.words[0] = place.bits();
  send_to_all(message, poll);
}

void World::add(Group& group) {
  const std::scoped_lock lock(groups_mutex_);
  groups_.push_back(&group);
  for (const auto& [process, reason] : ended_) group.lose(process, reason);
}

void World::remove(Group& group) noexcept {
  const std::scoped_lock lock(groups_mutex_);
  std::erase(groups_, &group);
  for (Group* const other : groups_) other->forget(group);
}

void World::notify_all(Subject subject) noexcept {
  Message message;
  message.subject = subject;
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) notify(process, message);
  }
}

// A full socket holds unread messages, and its reader checks the groups after reading them. A process that cannot
// receive anything checks them when the connection ends.
void World::notify(int process, const Message& message) noexcept {
  const std::scoped_lock lock(messages_mutex_);
  const MessageSocket& message_socket = peer(process).message_socket;
  try {
    (void)peer(process).message_socket.try_send(message);
  } catch (const std::system_error&) {
    message_socket.hang_up();
  }
}

// On a thread of its own, since the interpreter lock may not be available for a long time.
void World::answer_about_stacks() noexcept {
  if (thread_reports() == nullptr) return;
  try {
    std::thread([world = weak_from_this()] {
      if (const std::shared_ptr<World> living = world.lock()) living->describe_ranks();
    }).detach();
  } catch (const std::system_error&) {  // no thread left: the other process reports that this one does not answer
  }
}

// The interpreter lock may be held by a thread that waits for groups_mutex_.
void World::describe_ranks() noexcept {
  std::vector<std::pair<const Group*, std::vector<RankThread>>> asked;
  {
    const std::scoped_lock lock(groups_mutex_);
    for (const Group* const group : groups_) asked.emplace_back(group, group->threads_here());
  }
  for (const auto& [described, threads] : asked) {
    const std::vector<std::string> stacks = thread_reports()->stacks(threads);
    const std::scoped_lock lock(groups_mutex_);
    for (Group* const group : groups_) {
      if (group == described) group->answer(stacks);
    }
  }
}

void World::leave(std::string_view reason) noexcept {
  Message message;
  message.subject = Subject::kLeave;
  const std::span<char> text(reinterpret_cast<char*>(message.bytes.data()), message.bytes.size());
  message.number = static_cast<std::uint32_t>(shorten(reason, text));
  for (int process = 0; process < num_processes(); ++process) {
    if (!is_other(process)) continue;
    notify(process, message);
    peer(process).message_socket.hang_up();  // a caller that keeps the World must not keep the others waiting
  }
}

// Subgroups come after their parents in the list.
void World::look() noexcept {
  const std::scoped_lock lock(groups_mutex_);
  for (Group* const group : groups_) group->follow_parent();
}

// A process that has closed its groups may continue without sockets and keep results, so its holds stay valid.
void World::on_end(int process, sync::Ending how) noexcept {
  is_gone_[static_cast<std::size_t>(process)].set(true);
  const sync::Pidfd& pidfd = peer(process).pidfd;
  const bool has_exited = how == sync::Ending::kExited;
  if (has_exited) reclaim_policy_->set_ended(process);
  std::string reason;
  {
    const std::scoped_lock lock(messages_mutex_);
    reason = peer(process).farewell;
  }
  if (reason.empty()) {
    reason = has_exited || pidfd.fd() < 0 ? pidfd.how_it_ended() : std::string("closed its connection to this group");
  }
  {
    const std::scoped_lock lock(groups_mutex_);
    ended_.emplace_back(process, reason);
    bool is_lost = false;
    for (Group* const group : groups_) is_lost |= group->lose(process, reason);
    if (is_lost && pidfd.fd() < 0) reclaim_policy_->set_ended(process);
  }
  look();
}

void World::watch(int process) {
  Peer& watched = peer(process);
  watched.watching = sync::monitor_peer(watched.message_socket.fd(), watched.pidfd.fd(),
                                        {.on_message = [this, process] { receive_from(process); },
                                         .on_end = [this, process](sync::Ending how) { on_end(process, how); }});
}

bool World::is_connected(int process) const noexcept {
  const Peer& asked = *peers_[static_cast<std::size_t>(process)];
  return !is_gone(process) && !asked.pidfd.has_ended() && asked.message_socket.is_open();
}

void World::raise_lost(int process, const std::string& reason) const {
  const int rank = ranks_of(process).empty() ? -1 : ranks_of(process).front();
  throw core::WorkerLostError(
      whereabouts_of(process) + " " + reason + " while the group was created. Start the job again.", rank,
      host_of(process), pid_of(process), reason);
}

}  // namespace ringlet::collectives
