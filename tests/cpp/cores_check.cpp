// How many cores this process may keep busy: under the quotas that files tell, as tests/devices/test_cores.py has them
// for Python, and in a control group with a quota where this program may make one. On which of them ranks run, and when
// threads offer them to others.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "check.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/sync/process/cores.hpp"
#include "ringlet/sync/process/placement.hpp"
#include "ringlet/sync/wait.hpp"

namespace {

using namespace ringlet;
using stress::check;
using stress::Processes;

using Files = std::map<std::string, std::string>;

int cores_under(const Files& files) {
  return sync::quota_cores([&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

void version_2_rounds_the_quota_down() {
  const std::pair<const char*, int> cases[] = {
      // cpu.max, cores
      {"200000 100000\n", 2},
      {"250000 100000\n", 2},
      {"10000 100000\n", 1},
      {"0 100000\n", 1},
      {"max 100000\n", sync::kNoQuota},
      {"max", sync::kNoQuota},
      {"", sync::kNoQuota},
      {"nonsense 100000", sync::kNoQuota},
      {"200000 0", sync::kNoQuota},
      {"9000000000000000000 1", sync::kNoQuota},
  };
  for (const auto& [quota, cores] : cases) {
    check(cores_under({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", quota}}) == cores, quota);
  }
}

void version_1_rounds_the_quota_down() {
  for (const std::string mount : {"cpu,cpuacct", "cpu"}) {
    const std::string folder = "/sys/fs/cgroup/" + mount + "/a/";
    const Files files{{"/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n"},
                      {folder + "cpu.cfs_period_us", "100000\n"}};
    for (const auto& [quota, cores] : {std::pair("350000\n", 3), std::pair("-1\n", sync::kNoQuota)}) {
      Files all = files;
      all[folder + "cpu.cfs_quota_us"] = quota;
      check(cores_under(all) == cores, mount + " " + quota);
    }
  }
}

void the_least_quota_on_the_way_up_binds() {
  check(cores_under({{"/proc/self/cgroup", "0::/a/b"},
                     {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000"},
                     {"/sys/fs/cgroup/a/cpu.max", "200000 100000"},
                     {"/sys/fs/cgroup/cpu.max", "max 100000"}}) == 2,
        "that of the group above");
  check(cores_under({{"/proc/self/cgroup", "0::/../../outside"}, {"/sys/fs/cgroup/cpu.max", "100000 100000"}}) == 1,
        "a container finds its quota at the root");
  check(cores_under({}) == sync::kNoQuota, "without files there is no quota");
}

// Of one core, under the hierarchy of version 1 or of version 2; without a path where neither can be had.
class OneCore {
 public:
  OneCore() {
    const std::string name = "/ringlet-cores-" + std::to_string(getpid());
    for (const auto& [root, file, quota] : {std::tuple("/sys/fs/cgroup/cpu", "/cpu.cfs_quota_us", "100000"),
                                            std::tuple("/sys/fs/cgroup", "/cpu.max", "100000 100000")}) {
      path_ = root + name;
      if (mkdir(path_.c_str(), 0755) == 0 && write(path_ + file, quota)) return;
      rmdir(path_.c_str());
    }
    path_.clear();
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { rmdir(path_.c_str()); }

  bool enter() const { return !path_.empty() && write(path_ + "/cgroup.procs", "0"); }

 private:
  static bool write(const std::string& path, const char* text) {
    std::ofstream file(path);
    return static_cast<bool>(file << text << std::flush);
  }
  std::string path_;
};

// One of two: the group counts what it has for all of them.
void a_quota_holds_for_the_processes_of_a_group() {
  const OneCore one_core;
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    const bool is_limited = process == 1 && one_core.enter();
    if (is_limited) check(sync::usable_cores() == 1, "a quota of one core leaves one core");
    if (process == 1) processes.board().calls.store(is_limited ? 1 : 2);
    const auto world = processes.world(process);
    const collectives::Group group(2, {.timeout = std::chrono::seconds(60)}, world);
    if (processes.board().calls.load() == 1) check(world->cores() == 1, "and so it does for the group");
  });
  for (const int process : {0, 1}) check(processes.wait_for(process) == 0, "both end well");
  std::cout << (processes.board().calls.load() == 1 ? "with" : "without") << " a control group" << std::endl;
}

cpu_set_t affinity() {
  cpu_set_t set;
  check(sched_getaffinity(0, sizeof set, &set) == 0, "the affinity is known");
  return set;
}

void move_to(int core) {
  const cpu_set_t before = affinity();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  check(sched_setaffinity(0, sizeof one, &one) == 0, "a core of the affinity is allowed");
  check(sched_setaffinity(0, sizeof before, &before) == 0, "and then all again");
}

void a_thread_moves_and_keeps_its_affinity() {
  const cpu_set_t all = affinity();
  int num_moved = 0;
  for (int i = 0; i < 50; ++i) {
    const int core = sync::current_core();
    check(core >= 0 && CPU_ISSET(core, &all), "a thread runs on a core of its affinity");
    const bool has_moved = sync::move_to_core_outside(sync::CoreSet().set(static_cast<std::size_t>(core)));
    num_moved += has_moved && sync::current_core() != core ? 1 : 0;
    const cpu_set_t now = affinity();
    check(has_moved == (CPU_COUNT(&all) > 1), "it moves if it may run elsewhere");
    check(CPU_EQUAL(&now, &all), "its affinity stays");
  }
  check(CPU_COUNT(&all) == 1 || num_moved > 25, "and it is elsewhere, unless the system has moved it back");
  check(!sync::move_to_core_outside(sync::CoreSet().set()), "no core is left");
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sync::current_core(), &one);
  check(sched_setaffinity(0, sizeof one, &one) == 0, "a thread may be bound");
  check(!sync::move_to_core_outside(sync::CoreSet().set(static_cast<std::size_t>(sync::current_core()))),
        "a bound thread stays");
  const cpu_set_t now = affinity();
  check(CPU_EQUAL(&now, &one), "and stays bound");
  check(sched_setaffinity(0, sizeof all, &all) == 0, "free again");
}

// Both ranks begin on one core, again and again: calls succeed, the second rank leaves that core, no affinity changes.
void ranks_on_one_core_part() {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    const auto world = processes.world(process);
    collectives::Group group(2, {.timeout = std::chrono::seconds(60)}, world);
    if (world->cores() < 2) return;
    const cpu_set_t all = affinity();
    int core = 0;
    while (!CPU_ISSET(core, &all)) ++core;
    collectives::Member member = group.member(process);
    int num_apart = 0;
    for (int i = 0; i < 100; ++i) {
      move_to(core);
      for (int call = 0; call < 20; ++call) member.barrier();
      num_apart += sync::current_core() != core ? 1 : 0;
      usleep(5000);
    }
    const cpu_set_t now = affinity();
    check(CPU_EQUAL(&now, &all), "the affinity of a rank stays");
    if (process == 1) check(num_apart > 50, "moved in " + std::to_string(num_apart) + " of 100 cases");
  });
  for (const int process : {0, 1}) check(processes.wait_for(process) == 0, "both end well");
}

void a_yield_that_loses_the_core_is_the_last_for_a_while() {
  using namespace std::chrono_literals;
  const auto slow = [] { std::this_thread::sleep_for(2ms); };
  const auto start = sync::Clock::now();
  check(!sync::yield_until(10s, [] { return false; }, slow), "nothing was ready");
  check(sync::Clock::now() - start < 5s, "the wait ends after the slow yield");
  const auto now = sync::Clock::now() + 1s;
  check(sync::yields_pay(now), "a second later, yields pay again");
  sync::note_yield(now, 100us);
  check(sync::yields_pay(now), "a short yield changes nothing");
  sync::note_yield(now, 2ms);
  check(!sync::yields_pay(now + 4ms) && sync::yields_pay(now + 6ms), "after a long one, yields pay from 5 ms later");
  sync::note_yield(now + 6ms, 2ms);
  check(!sync::yields_pay(now + 15ms) && sync::yields_pay(now + 17ms), "10 ms if the next one is soon long as well");
  for (int ms = 17; ms < 100; ms += 10) sync::note_yield(now + std::chrono::milliseconds(ms), 2ms);
  check(!sync::yields_pay(now + 136ms) && sync::yields_pay(now + 138ms), "40 ms at most");
  sync::note_yield(now + 300ms, 2ms);
  check(sync::yields_pay(now + 306ms), "and 5 ms again after a while");
}

}  // namespace

int main() {
  a_thread_moves_and_keeps_its_affinity();
  ranks_on_one_core_part();
  version_2_rounds_the_quota_down();
  version_1_rounds_the_quota_down();
  the_least_quota_on_the_way_up_binds();
  a_quota_holds_for_the_processes_of_a_group();
  a_yield_that_loses_the_core_is_the_last_for_a_while();
}
