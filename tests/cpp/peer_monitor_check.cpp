// That the watch tells how each kind of end came, what was sent before it, and nothing once it was told to stop; and
// that a forked child holds no socket open.
#include "ringlet/sync/process/peer_monitor.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "check.hpp"
#include "ringlet/sync/process/process.hpp"

namespace {

using namespace std::chrono_literals;
using ringlet::stress::check;
using ringlet::sync::Descriptor;
using ringlet::sync::Ending;
using ringlet::sync::LivingProcess;
using ringlet::sync::MonitoredPeer;
using ringlet::sync::PeerCallbacks;
using ringlet::sync::Pidfd;

struct Child {
  Pidfd pidfd;
  Descriptor socket;
};

// Runs `body(socket)` in a child and gives this end of its socket.
Child start(const std::function<void(int)>& body) {
  std::array<int, 2> ends{};
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets can be made");
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  return {Pidfd::open(pid), Descriptor(ends[0])};
}

void reap(const Child& child) { waitpid(child.pidfd.pid(), nullptr, 0); }

// What the watch told about one child.
struct Told {
  explicit Told(const Child& child)
      : watching(ringlet::sync::monitor_peer(child.socket.get(), child.pidfd.fd(),
                                             {.on_message = [this, fd = child.socket.get()] { read_all(fd); },
                                              .on_end = [this](Ending how) { ended.set_value(how); }})) {}

  void read_all(int fd) {
    std::array<char, 16> buffer;
    ssize_t count = 0;
    while ((count = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
  Ending how() {
    std::future<Ending> future = ended.get_future();
    check(future.wait_for(20s) == std::future_status::ready, "an end is told");
    return future.get();
  }

  std::string text;
  std::promise<Ending> ended;
  MonitoredPeer watching;
};

void each_kind_of_end_is_told() {
  const std::array<std::pair<std::function<void()>, const char*>, 5> kinds{{
      {[] { _exit(3); }, "exited with status 3"},
      {[] { _exit(0); }, "exited with status 0"},
      {[] { raise(SIGKILL); }, "was killed by SIGKILL (signal 9)"},
      {[] { raise(SIGTERM); }, "was killed by SIGTERM (signal 15)"},
      {[] { raise(SIGRTMIN + 1); }, "was killed by signal 35"},
  }};
  for (const auto& [die, expected] : kinds) {
    const Child child = start([&die](int socket) {
      check(send(socket, "last words", 10, 0) == 10, "a message can be sent");
      die();
    });
    Told told(child);
    check(told.how() == Ending::kExited, "the pidfd tells the end");
    check(told.text == "last words", "what was sent before the end is read before it");
    check(child.pidfd.has_ended(), "the pidfd knows");
    check(child.pidfd.how_it_ended() == expected, child.pidfd.how_it_ended() + " is what is expected: " + expected);
    reap(child);
    const std::string later = child.pidfd.how_it_ended();
    check(later == expected || later == "ended; the system does not report how", "a reaped child tells no other story");
  }
}

// A process that is not our child, ended and not yet waited for, or waited for by its parent.
void the_end_of_a_stranger_is_told(bool is_reaped) {
  std::array<int, 2> pipe_ends{};
  check(pipe(pipe_ends.data()) == 0, "a pipe can be made");
  const Child parent = start([&](int socket) {
    const pid_t pid = fork();
    if (pid == 0) {
      char go = 0;
      check(read(pipe_ends[0], &go, 1) == 1, "the word to go comes");
      _exit(7);
    }
    send(socket, &pid, sizeof pid, 0);
    char done = 0;
    if (is_reaped) waitpid(pid, nullptr, 0);
    send(socket, &done, 1, 0);
    recv(socket, &done, 1, 0);
  });
  pid_t pid = 0;
  char done = 0;
  check(recv(parent.socket.get(), &pid, sizeof pid, 0) == sizeof pid, "the number comes");
  const Pidfd stranger = Pidfd::open(pid);
  check(!stranger.has_ended(), "it lives");
  check(write(pipe_ends[1], &done, 1) == 1, "it is told to go");
  recv(parent.socket.get(), &done, 1, 0);
  while (!stranger.has_ended()) std::this_thread::sleep_for(1ms);
  const std::string how = stranger.how_it_ended();
  check(how == "exited with status 7" || (is_reaped && how == "ended; the system does not report how"), how);
  send(parent.socket.get(), &done, 1, 0);
  reap(parent);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

void a_socket_that_closes_while_its_process_lives_is_told() {
  const Child child = start([](int socket) {
    close(socket);
    pause();
  });
  {
    Told told(child);
    check(told.how() == Ending::kHungUp, "the socket tells that nobody listens");
    check(!child.pidfd.has_ended(), "its process lives");
  }
  kill(child.pidfd.pid(), SIGKILL);
  reap(child);
}

void without_pidfds_the_socket_tells() {
  Child child = start([](int) { _exit(0); });
  reap(child);
  child.pidfd = Pidfd(-1, child.pidfd.pid());
  Told told(child);
  check(told.how() == Ending::kHungUp, "the end is seen");
  check(child.pidfd.how_it_ended() == "ended; the system does not report how", "the ending is reported as unknown");
}

void a_forked_child_holds_no_socket_open() {
  std::array<int, 2> ends{};
  check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets can be made");
  Descriptor mine(ends[0]);
  const Descriptor other(ends[1]);
  {
    MonitoredPeer watching =
        ringlet::sync::monitor_peer(mine.get(), -1, {.on_message = [] {}, .on_end = [](Ending) {}});
    const pid_t pid = fork();
    if (pid == 0) {
      watching.end();
      mine.close();
      const Child child = start([](int) { _exit(1); });
      Told told(child);
      check(told.how() == Ending::kExited, "a child can watch children of its own");
      pause();
    }
    watching.end();
    mine.close();
    char byte = 0;
    check(recv(other.get(), &byte, 1, 0) == 0, "the other end sees the socket closed, whatever the child does");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

// Ends watchings while messages come: no call may run after end().
void no_call_comes_after_the_end_of_a_watching(std::size_t rounds) {
  for (std::size_t round = 0; round < rounds; ++round) {
    std::array<int, 2> ends{};
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets can be made");
    const Descriptor mine(ends[0]);
    const Descriptor other(ends[1]);
    auto calls = std::make_unique<int>(0);
    MonitoredPeer watching = ringlet::sync::monitor_peer(mine.get(), -1,
                                                         {.on_message =
                                                              [&calls, fd = mine.get()] {
                                                                char byte = 0;
                                                                recv(fd, &byte, 1, MSG_DONTWAIT);
                                                                ++*calls;
                                                              },
                                                          .on_end = [](Ending) {}});
    for (std::size_t i = 0; i < round % 4; ++i) send(other.get(), "x", 1, 0);
    watching.end();
    calls.reset();  // a late call would be a use after free
    send(other.get(), "x", 1, 0);
  }
}

int count_entries(const char* folder) {
  int count = 0;
  DIR* const entries = opendir(folder);
  while (readdir(entries) != nullptr) ++count;
  closedir(entries);
  return count;
}

void a_process_is_known_without_a_handle() {
  const Child child = start([](int) { pause(); });
  const int pid = child.pidfd.pid();
  const LivingProcess process(pid);
  check(!LivingProcess().has_ended() && !LivingProcess(getpid()).has_ended(), "nobody has not ended, nor has this one");
  check(!process.has_ended() && !ringlet::sync::is_stopped(pid), "it lives, and goes on");
  kill(pid, SIGSTOP);
  waitpid(pid, nullptr, WUNTRACED);
  check(!process.has_ended() && ringlet::sync::is_stopped(pid), "a stopped process lives");
  kill(pid, SIGKILL);
  for (int i = 0; i < 2000 && !process.has_ended(); ++i) std::this_thread::sleep_for(1ms);
  check(process.has_ended() && !ringlet::sync::is_stopped(pid), "one that nobody has waited for has ended");
  reap(child);
  check(process.has_ended() && !ringlet::sync::is_stopped(pid), "one that is gone has ended");
}

void a_process_in_uninterruptible_sleep_is_seen() {
  const Child child = start([](int socket) {
    char byte = 0;
    (void)!read(socket, &byte, 1);
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) != 0) _exit(0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!read(socket, &byte, 1);  // until then, its parent sleeps in the kernel
    _exit(0);
  });
  const int pid = child.pidfd.pid();
  check(!ringlet::sync::sleeps_uninterruptibly(pid), "it waits for a message, which signals interrupt");
  send(child.socket.get(), "x", 1, 0);
  for (int i = 0; i < 2000 && !ringlet::sync::sleeps_uninterruptibly(pid); ++i) std::this_thread::sleep_for(1ms);
  check(ringlet::sync::sleeps_uninterruptibly(pid), "it waits for a child of vfork");
  send(child.socket.get(), "x", 1, 0);
  reap(child);
  check(!ringlet::sync::sleeps_uninterruptibly(pid), "one that has ended does not sleep");
}

}  // namespace

int main() {
  std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first
  const int descriptors = count_entries("/proc/self/fd");
  const int threads = count_entries("/proc/self/task");
  each_kind_of_end_is_told();
  the_end_of_a_stranger_is_told(false);
  the_end_of_a_stranger_is_told(true);
  a_socket_that_closes_while_its_process_lives_is_told();
  without_pidfds_the_socket_tells();
  a_forked_child_holds_no_socket_open();
  no_call_comes_after_the_end_of_a_watching(2000);
  a_process_is_known_without_a_handle();
  a_process_in_uninterruptible_sleep_is_seen();
  for (int i = 0; i < 2000 && count_entries("/proc/self/task") > threads; ++i) std::this_thread::sleep_for(10ms);
  check(count_entries("/proc/self/task") == threads, "the thread ends with the last watching");
  check(count_entries("/proc/self/fd") == descriptors, "no descriptor is left");
}
