// How the processes of a world get to know each other.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include "ringlet/collectives/world.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kWaitMilliseconds = 20;

// A bit for each core that the process may run on; what lies beyond the message is left out.
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

// Waits until `is_ready(process)` has held for every other process, reading what they send.
template <class Ready>
void World::wait_for_all(Clock::time_point end, Clock::duration timeout, Ready&& is_ready) {
  for (int process = 0; process < num_processes(); ++process) {
    while (is_other(process)) {
      receive_from(process);
      {
        const std::scoped_lock lock(mail_mutex_);
        if (is_ready(process)) break;
        if (peer(process).mailbox.is_closed()) {
          // A process closes its sockets a moment before its end can be told.
          for (int i = 0; i < 50 && peer(process).pidfd.fd() >= 0 && !peer(process).pidfd.has_ended(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
          raise_lost(process, peer(process).pidfd.has_ended() ? peer(process).pidfd.how_it_ended()
                                                              : "closed its connection to this group");
        }
      }
      peer(process).mailbox.wait(false, kWaitMilliseconds);
      if (Clock::now() > end) {
        throw core::DeadlineError(
            "process " + std::to_string(process) + " (pid " + std::to_string(pid_of(process)) + " on " +
            host_of(process) + ") did not answer within " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) +
            " s while the group was made. Find out what it does, or allow more with timeout_seconds=.");
      }
    }
  }
}

void World::greet() {
  Message hello;
  hello.subject = Subject::kHello;
  hello.number = may_cross_ ? 1 : 0;
  hello.words = {std::hash<std::string>()(token_), reinterpret_cast<std::uintptr_t>(&probe_), probe_};
  hello.bytes = own_cores();
  peer(index_).hello = hello;
  for (int process = 0; process < num_processes(); ++process) {
    if (is_other(process)) send(process, hello);
  }
}

// Whether this process can read the memory of all others; that it can write it, too, follows: the system asks the same.
bool World::try_all_memories() {
  bool can_read = may_cross_;
  for (int process = 0; process < num_processes() && can_read; ++process) {
    if (!is_other(process)) continue;
    const Message& hello = peer(process).hello;
    std::uint64_t seen = 0;
    can_read = hello.number != 0 &&
               read_across(pid_of(process), hello.words[1], sizeof seen, &seen) == Crossing::kDone &&
               seen == hello.words[2];
  }
  return can_read;
}

void World::meet(Clock::duration timeout) {
  std::call_once(met_, [&] {
    const auto end = timeout == sync::kForever ? Clock::time_point::max() : Clock::now() + timeout;
    greet();
    wait_for_all(end, timeout, [&](int process) { return peer(process).has_greeted; });
    std::array<std::byte, 128> cores{};
    for (const auto& known : peers_) {
      if (known->hello.words[0] != peer(index_).hello.words[0]) {
        throw core::MismatchError("a process of another job is connected to this group.");
      }
      for (std::size_t i = 0; i < cores.size(); ++i) cores[i] |= known->hello.bytes[i];
    }
    cores_ = std::max(1, count_bits(cores));
    Message verdict;
    verdict.subject = Subject::kVerdict;
    verdict.number = try_all_memories() ? 1 : 0;
    for (int process = 0; process < num_processes(); ++process) {
      if (is_other(process)) send(process, verdict);
    }
    wait_for_all(end, timeout, [&](int process) { return peer(process).has_judged; });
    can_cross_ = verdict.number != 0;
    for (int process = 0; process < num_processes(); ++process) {
      can_cross_ = can_cross_ && (!is_other(process) || peer(process).can_read_all);
    }
    for (int process = 0; process < num_processes(); ++process) {
      if (is_other(process)) watch(process);
    }
  });
}

Place World::receive_control(Clock::duration timeout) {
  constexpr int kMaker = 0;
  Place place;
  const auto end = timeout == sync::kForever ? Clock::time_point::max() : Clock::now() + timeout;
  wait_for_all(end, timeout, [&](int process) {
    if (process != kMaker || !place.is_null()) return true;
    if (controls_.empty()) return false;
    place = controls_.front();
    controls_.pop_front();
    return true;
  });
  return place;
}

}  // namespace ringlet::collectives
