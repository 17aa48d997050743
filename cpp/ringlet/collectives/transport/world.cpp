#include "ringlet/collectives/transport/world.hpp"

#include <bit>
#include <chrono>
#include <exception>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include "ringlet/collectives/group/fixed_text.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kWaitMilliseconds = 20;

void run(sync::Poll* poll) {
  if (poll != nullptr) (*poll)();
}
// Far longer than it takes to make room in a socket, or for a message that was sent to come.
constexpr std::chrono::seconds kMailLimit{30};
constexpr std::size_t kMostRanges = 4096;

}  // namespace

World::World(int index, std::vector<ProcessInfo> processes, std::string token, bool may_cross)
    : index_(index),
      token_(std::move(token)),
      may_cross_(may_cross),
      generation_(sync::fork_generation()),
      is_gone_(processes.size()),
      borrowers_(std::make_shared<Borrowers>(index, static_cast<int>(processes.size()))),
      mappings_(std::make_shared<std::deque<memory::Segment>>()),
      probe_(std::hash<std::string>()(token_) ^ static_cast<std::uint64_t>(index)),
      ranges_(kMostRanges) {
  for (ProcessInfo& process : processes) {
    auto made = std::make_unique<Peer>(std::move(process));
    made->mailbox = Mailbox(std::exchange(made->info.socket_fd, -1));
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
    if (is_other(process)) borrowers_->set_process(process, peer(process).pidfd);
  }
  borrowers_->watch_alone();
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
      const std::scoped_lock lock(mail_mutex_);
      if (peer(process).mailbox.try_send(message, descriptor)) return;
    } catch (const std::system_error& error) {
      throw core::AbortedError("cannot pass shared memory to " + whereabouts_of(process) + ": " +
                               error.code().message() + ".");
    }
    if (is_gone(process)) return;
    // A peer that does not read may itself be waiting for socket space.
    for (int other = 0; other < num_processes(); ++other) {
      if (is_other(other)) receive_from(other);
    }
    peer(process).mailbox.wait(true, kWaitMilliseconds);
    run(poll);
    if (Clock::now() > end) {
      throw core::AbortedError("cannot pass shared memory to " + whereabouts_of(process) +
                               ": that process does not read what it is sent.");
    }
  }
}

// Whatever comes is a reason to look which groups have failed: a process whose socket is full has not been told.
void World::receive_from(int process) {
  bool has_received = false;
  {
    const std::scoped_lock lock(mail_mutex_);
    while (auto letter = peer(process).mailbox.try_receive()) {
      handle(process, std::move(*letter));
      has_received = true;
    }
  }
  if (has_received) look();
}

void World::handle(int process, Letter letter) {
  Peer& sender = peer(process);
  switch (letter.message.subject) {
    case Subject::kHello:
      sender.hello = letter.message;
      sender.has_greeted = true;
      break;
    case Subject::kVerdict:
      sender.can_read_all = letter.message.number != 0;
      sender.has_judged = true;
      break;
    case Subject::kSegment:
      take_segment(process, std::move(letter));
      break;
    case Subject::kControl:
      controls_.emplace_back(letter.message.words[0]);
      break;
    case Subject::kLook:
      break;
    case Subject::kLeave:
      sender.farewell.assign(reinterpret_cast<const char*>(letter.message.bytes.data()), letter.message.number);
      break;
  }
}

// A segment that cannot be mapped is reported where it is used: see address_of.
void World::take_segment(int process, Letter letter) {
  if (letter.is_cut) {
    segment_problem_ = "the shared memory of " + name_of(process) +
                       " cannot be mapped: this process has no file descriptor left. Close files, or allow more of " +
                       "them with `ulimit -n`.";
    return;
  }
  try {
    memory::Segment segment = memory::Segment::attach(letter.descriptor.release(), letter.message.words[0]);
    segment.close_descriptor();
    mappings_->push_back(std::move(segment));
    const memory::Segment& mapped = mappings_->back();
    ranges_.add({mapped.data(), mapped.size(), Place::of_shared(process, letter.message.number, 0)});
    peer(process).segments.set(letter.message.number, mapped.data());
  } catch (const std::exception& error) {
    segment_problem_ = error.what();
  }
}

// --- Places ----------------------------------------------------------------------------------------------------------

Place World::known_place_of(const void* address) const noexcept {
  const auto* const wanted = static_cast<const std::byte*>(address);
  for (const Range& range : ranges_.items()) {
    if (wanted >= range.begin && wanted < range.begin + range.bytes) {
      return range.place + static_cast<std::size_t>(wanted - range.begin);
    }
  }
  return Place::of_private(address);
}

Place World::place_of(const void* address, sync::Poll* poll) {
  if (const Place known = known_place_of(address); known.is_shared()) return known;
  const auto found = memory::SharedHeap::of_this_process().find(address);
  if (!found.has_value()) return Place::of_private(address);
  send_segment(found->segment, poll);
  return Place::of_shared(index_, found->segment, found->offset);
}

// Two ranks of this process may send one segment twice: a receiver that gets it twice maps it twice and uses either.
void World::send_segment(std::uint32_t index, sync::Poll* poll) {
  const memory::Segment& segment = memory::SharedHeap::of_this_process().segment(index);
  Message message;
  message.subject = Subject::kSegment;
  message.number = index;
  message.words[0] = segment.size();
  send_to_all(message, poll, segment.fd());
  const std::scoped_lock lock(mail_mutex_);
  if (peer(index_).segments.get(index) != nullptr) return;
  ranges_.add({segment.data(), segment.size(), Place::of_shared(index_, index, 0)});
  peer(index_).segments.set(index, segment.data());
}

// Its owner sent the segment before it named the place, so it lies in the socket if the table does not have it yet.
std::byte* World::address_of(Place place, sync::Poll* poll) {
  const auto end = Clock::now() + kMailLimit;
  for (;;) {
    if (std::byte* const begin = peer(place.process()).segments.get(place.segment()); begin != nullptr) {
      return begin + place.offset();
    }
    receive_from(place.process());
    if (peer(place.process()).segments.get(place.segment()) != nullptr) continue;
    {
      const std::scoped_lock lock(mail_mutex_);
      if (!segment_problem_.empty()) throw core::AbortedError(segment_problem_);
      if (peer(place.process()).mailbox.is_closed() || Clock::now() > end) {
        throw core::AbortedError("the shared memory of " + name_of(place.process()) +
                                 " did not come: its process has ended.");
      }
    }
    peer(place.process()).mailbox.wait(false, 1);
    run(poll);
  }
}

memory::Block World::take_hold(Place place, sync::Poll* poll) {
  std::byte* const data = address_of(place, poll);
  const bool is_own = place.process() == index_;
  return hold(data, index_, is_own ? nullptr : std::shared_ptr<const void>(mappings_));
}

// --- Groups ----------------------------------------------------------------------------------------------------------

void World::send_control(Place place, sync::Poll* poll) {
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

void World::spread_failure() noexcept {
  Message message;
  message.subject = Subject::kLook;
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) tell_to_look(process, message);
  }
}

// A full socket holds unread messages, and its reader checks the groups after reading them. A process that cannot
// receive anything checks them when the connection ends.
void World::tell_to_look(int process, const Message& message) noexcept {
  const std::scoped_lock lock(mail_mutex_);
  const Mailbox& mailbox = peer(process).mailbox;
  try {
    (void)peer(process).mailbox.try_send(message);
  } catch (const std::system_error&) {
    mailbox.hang_up();
  }
}

void World::leave(std::string_view reason) noexcept {
  Message message;
  message.subject = Subject::kLeave;
  const std::span<char> text(reinterpret_cast<char*>(message.bytes.data()), message.bytes.size());
  message.number = static_cast<std::uint32_t>(shorten(reason, text));
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) tell_to_look(process, message);
  }
}

// Groups were added after those that they are parts of.
void World::look() noexcept {
  const std::scoped_lock lock(groups_mutex_);
  for (Group* const group : groups_) group->follow_parent();
}

// A process that closed its groups may go on without its sockets, and keep results: its holds count.
void World::on_end(int process, sync::Ending how) noexcept {
  is_gone_[static_cast<std::size_t>(process)].set(true);
  const sync::Pidfd& pidfd = peer(process).pidfd;
  const bool has_exited = how == sync::Ending::kExited;
  if (has_exited) borrowers_->set_ended(process);
  std::string reason;
  {
    const std::scoped_lock lock(mail_mutex_);
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
    if (is_lost && pidfd.fd() < 0) borrowers_->set_ended(process);
  }
  look();
}

void World::watch(int process) {
  Peer& watched = peer(process);
  watched.watching = sync::watch(watched.mailbox.fd(), watched.pidfd.fd(),
                                 {.on_message = [this, process] { receive_from(process); },
                                  .on_end = [this, process](sync::Ending how) { on_end(process, how); }});
}

bool World::is_connected(int process) const noexcept {
  const Peer& asked = *peers_[static_cast<std::size_t>(process)];
  return !is_gone(process) && !asked.pidfd.has_ended() && asked.mailbox.is_open();
}

void World::raise_lost(int process, const std::string& reason) const {
  const int rank = ranks_of(process).empty() ? -1 : ranks_of(process).front();
  throw core::WorkerLostError(
      whereabouts_of(process) + " " + reason + " while the group was made. Start the job again.", rank,
      host_of(process), pid_of(process), reason);
}

}  // namespace ringlet::collectives
