// Rendezvous of the processes of a world.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/process/cores.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kWaitMilliseconds = 20;

// A bit for each core that the process may run on; cores beyond the size of the message are omitted.
std::array<std::byte, 128> own_cores() {
  std::array<std::byte, 128> mask{};
#if defined(__linux__)
  cpu_set_t set;
  static_assert(sizeof set >= mask.size());
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0) std::memcpy(mask.data(), &set, mask.size());
#endif
  return mask;
}

int count_bits(const std::array<std::byte, 128>& mask) {
  int bits = 0;
  for (const std::byte part : mask) bits += std::popcount(std::to_integer<unsigned>(part));
  return bits;
}

}  // namespace

// Waits until `is_ready(process)` has been true for every other process, and reads their messages.
template <class Ready>
void World::wait_for_all(const JoinLimit& limit, sync::Poll* poll, Ready&& is_ready) {
  for (;;) {
    std::optional<int> missing;  // the first
    std::optional<int> lost;     // preferably one that sent no reason: other processes left as a consequence
    for (int process = 0; process < num_processes(); ++process) {
      if (!is_other(process)) continue;
      receive_from(process);
      const std::scoped_lock lock(messages_mutex_);
      if (is_ready(process)) continue;
      if (!missing) missing = process;
      const bool has_said_why = !peer(process).farewell.empty();
      if (!has_said_why && peer(process).message_socket.is_closed()) {
        lost = process;
        break;
      }
      if (has_said_why && !lost) lost = process;
    }
    if (lost) raise_lost(*lost, reason_of_leaving(*lost, poll));
    if (!missing) return;
    peer(*missing).message_socket.wait(false, kWaitMilliseconds);
    if (poll != nullptr) (*poll)();
    if (Clock::now() > limit.end) {
      throw core::DeadlineError(whereabouts_of(*missing) + " did not answer within " + seconds_text(limit.asked) +
                                " while the group was created. Check what it executes, or allow more time with "
                                "timeout_seconds= or RINGLET_TIMEOUT_SECONDS.");
    }
  }
}

// A process that ends closes its sockets shortly before its end can be detected.
std::string World::reason_of_leaving(int process, sync::Poll* poll) {
  {
    const std::scoped_lock lock(messages_mutex_);
    if (!peer(process).farewell.empty()) return peer(process).farewell;
  }
  const sync::Pidfd& pidfd = peer(process).pidfd;
  const auto end = Clock::now() + std::chrono::milliseconds(sync::kHangUpGraceMs);
  while (pidfd.fd() >= 0 && !pidfd.has_ended() && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (poll != nullptr) (*poll)();
  }
  return pidfd.has_ended() ? pidfd.how_it_ended() : "closed its connection to this group";
}

void World::greet(sync::Poll* poll) {
  Message hello;
  hello.subject = Subject::kHello;
  hello.number = (may_use_cma_ ? 1U : 0U) | static_cast<std::uint32_t>(sync::quota_cores()) << 1;
  hello.words = {std::hash<std::string>()(token_), reinterpret_cast<std::uintptr_t>(&probe_), probe_};
  hello.bytes = own_cores();
  peer(index_).hello = hello;
  send_to_all(hello, poll);
}

// Whether this process can read the memory of all others. The system requires the same permission to write it.
bool World::try_all_memories() {
  bool can_read = may_use_cma_;
  for (int process = 0; process < num_processes() && can_read; ++process) {
    if (!is_other(process)) continue;
    const Message& hello = peer(process).hello;
    std::uint64_t seen = 0;
    can_read = (hello.number & 1) != 0 &&
               cma_read(pid_of(process), hello.words[1], sizeof seen, &seen) == CmaResult::kDone &&
               seen == hello.words[2];
  }
  return can_read;
}

void World::rendezvous(const JoinLimit& limit, sync::Poll* poll) {
  std::call_once(rendezvous_once_, [&] {
    greet(poll);
    wait_for_all(limit, poll, [&](int process) { return peer(process).has_greeted; });
    std::array<std::byte, 128> cores{};
    int quota = sync::kNoQuota;  // the minimum: processes of one job mostly share one quota
    for (int process = 0; process < num_processes(); ++process) {
      const Message& hello = peer(process).hello;
      if (hello.words[0] != peer(index_).hello.words[0]) {
        throw core::MismatchError(whereabouts_of(process) + " is connected to this group but belongs to another job.");
      }
      for (std::size_t i = 0; i < cores.size(); ++i) cores[i] |= hello.bytes[i];
      quota = std::min(quota, static_cast<int>(hello.number >> 1));
    }
    cores_ = std::max(1, std::min(count_bits(cores), quota));
    Message verdict;
    verdict.subject = Subject::kVerdict;
    verdict.number = try_all_memories() ? 1 : 0;
    send_to_all(verdict, poll);
    wait_for_all(limit, poll, [&](int process) { return peer(process).has_judged; });
    can_use_cma_ = verdict.number != 0;
    for (int process = 0; process < num_processes(); ++process) {
      can_use_cma_ = can_use_cma_ && (!is_other(process) || peer(process).can_read_all);
    }
    for (int process = 0; process < num_processes(); ++process) {
      if (is_other(process)) watch(process);
    }
  });
}

BufferName World::receive_control(const JoinLimit& limit, sync::Poll* poll) {
  constexpr int kMaker = 0;
  BufferName place;
  wait_for_all(limit, poll, [&](int process) {
    if (process != kMaker || !place.is_null()) return true;
    if (controls_.empty()) return false;
    place = controls_.front();
    controls_.pop_front();
    return true;
  });
  return place;
}

}  // namespace ringlet::collectives
