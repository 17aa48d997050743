// That a group fails, with a named cause and for everybody, where its processes cannot send each other anything.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/transport/messages.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Group;
using collectives::Member;
using collectives::Options;
using stress::check;
using stress::Processes;

constexpr Options kOptions{.timeout = std::chrono::seconds(50)};

void end_well(Processes& processes) {
  for (int process = 0; process < processes.layout().num_processes(); ++process) {
    check(processes.wait_for(process) == 0, "every process ends well");
  }
}

// Process 1 loses its socket before it has sent anything of its shared memory.
void a_segment_that_cannot_be_sent_fails_the_group_by_name() {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    const int socket = processes.socket(process, 1 - process);
    Group group(2, kOptions, processes.world(process));
    Member member = group.member(process);
    if (process == 1) {
      const int nothing = open("/dev/null", O_RDWR);
      check(dup2(nothing, socket) == socket, "a socket can be lost");
    }
    const std::vector<float> input(5000);
    const std::int64_t length = 5000;
    const collectives::Buffer part{.input = input.data(), .count = input.size(), .shape = {&length, 1}};
    try {
      member.all_reduce({&part, 1}, core::Op::kSum);
      check(false, "the call cannot be made");
    } catch (const core::AbortedError& error) {
      const std::string cause =
          "all_reduce(SUM, float32[5000]), call 1 of rank 1, failed: cannot pass shared memory to rank 0 (pid " +
          std::to_string(processes.board().pids[0].load()) + " on here): Socket operation on non-socket.";
      check(error.what() == cause, std::string("all are told the cause: ") + error.what());
    }
    check(group.failure().has_value(), "the group has failed");
    member.depart("closed its group");
  });
  end_well(processes);
}

// Rank 0 waits in a part of the group. Process 2, which is not in it, fails the group and finds no room in the socket.
void a_failure_is_told_through_a_full_socket() {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    const int socket = process == 2 ? processes.socket(2, 0) : -1;
    std::atomic<std::uint64_t>& step = processes.board().calls;
    Group group(3, kOptions, processes.world(process));
    Member member = group.member(process);
    collectives::SubgroupMember part = member.split(process == 2 ? std::nullopt : std::optional(0));
    if (process == 0) {
      step.store(1);
      try {
        part.group->member(part.rank).barrier();
        check(false, "the group of the part has failed");
      } catch (const core::AbortedError& error) {
        check(error.what() == std::string("enough"), "a part states the cause of its group");
      }
    } else if (process == 2) {
      while (step.load() < 2) usleep(100);
      const collectives::Message message{.subject = collectives::Subject::kVerdict, .number = 1};
      while (send(socket, &message, sizeof message, MSG_DONTWAIT) > 0) {
      }
      group.abort("enough");
      step.store(3);
    }
    while (process != 0 && step.load() < 4) usleep(100);  // until rank 0 knows
    member.depart("closed its group");
  });
  std::atomic<std::uint64_t>& step = processes.board().calls;
  while (step.load() < 1) usleep(100);
  usleep(50'000);  // for it to be in the call
  processes.stop(0);
  step.store(2);
  while (step.load() < 3) usleep(100);
  processes.go_on(0);
  check(processes.wait_for(0, 20) == 0, "rank 0 is told");
  step.store(4);
  check(processes.wait_for(1) == 0 && processes.wait_for(2) == 0, "every process ends well");
}

// More descriptors are under way than one process may have open, as many slow receivers bring about: the message waits
// until they are received.
void a_descriptor_waits_while_too_many_are_under_way() {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{.rlim_cur = 40, .rlim_max = 40};
    check(setrlimit(RLIMIT_NOFILE, &few) == 0, "the limit can be lowered");
    if (geteuid() == 0) check(setresuid(65534, 65534, 65534) == 0, "the limit counts");
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "sockets can be made");
    collectives::MessageSocket sender(ends[0]);
    collectives::MessageSocket receiver(ends[1]);
    const collectives::Message message{.subject = collectives::Subject::kSegment};
    int sent = 0;
    while (sent < 1000 && sender.try_send(message, 0)) ++sent;  // raised once the limit was reached
    check(sent >= 10 && sent < 1000, "no more than the limit are under way");
    for (int i = 0; i < sent; ++i) check(receiver.try_receive().has_value(), "all that were sent are received");
    check(sender.try_send(message, 0), "there is room again");
    std::_Exit(0);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the child ends well");
}

}  // namespace

int main() {
  a_segment_that_cannot_be_sent_fails_the_group_by_name();
  a_failure_is_told_through_a_full_socket();
  a_descriptor_waits_while_too_many_are_under_way();
}
