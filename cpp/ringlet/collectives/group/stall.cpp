// Reports of calls that wait for a long time: which ranks are missing, and what every rank executes.
//
// The first rank that has waited for Options::stall claims the call and reports for all. A separate thread describes
// the ranks of its process, since a thread in C code may hold the interpreter lock forever; the monitor threads of
// other processes describe theirs, on request. A process that does not answer in time is named as such.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/sync/append_only.hpp"
#include "ringlet/sync/process/process.hpp"

namespace ringlet::collectives {

namespace {

// Maximum wait for an interpreter's answer, which takes milliseconds unless it is stuck or the machine is busy.
constexpr std::chrono::seconds kAnswerLimit{2};
constexpr std::size_t kMostStacks = 8;
constexpr std::string_view kSilent = ": no answer, perhaps because C code holds the interpreter lock";
constexpr std::string_view kUninterruptible =
    ": no answer, in uninterruptible sleep: it waits for a disk, a network file system, or memory that was swapped out";
constexpr std::string_view kPrinted = "; its process prints its stacks on standard error";

constinit sync::Pointer<ThreadReports> installed;

// The result of f(), called on another thread; nothing if it takes too long.
template <class F>
auto answer_of(F f, sync::Clock::time_point end) -> std::optional<decltype(f())> {
  struct Answer {
    std::mutex mutex;
    std::condition_variable is_there;
    std::optional<decltype(f())> value;
  };
  const auto answer = std::make_shared<Answer>();
  std::thread([answer, f = std::move(f)] {
    auto value = f();
    const std::scoped_lock lock(answer->mutex);
    answer->value = std::move(value);
    answer->is_there.notify_one();
  }).detach();
  std::unique_lock lock(answer->mutex);
  answer->is_there.wait_until(lock, end, [&] { return answer->value.has_value(); });
  return std::move(answer->value);
}

std::vector<std::string> parts_of(const std::string& texts) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= texts.size();) {
    const std::size_t end = std::min(texts.find(kStackSeparator, begin), texts.size());
    parts.push_back(texts.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void log(const std::string& text) {
  const auto is_logged = std::make_shared<sync::Flag>();
  if (ThreadReports* const reports = thread_reports(); reports != nullptr) {
    const auto log_by_owner = [reports, is_logged, text] {
      reports->log(text, *is_logged);
      return true;
    };
    (void)answer_of(log_by_owner, sync::Clock::now() + kAnswerLimit);
  }
  if (!is_logged->claim()) return;
  const std::string line = "ringlet: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void set_thread_reports(ThreadReports& given) noexcept { installed.set(&given); }
ThreadReports* thread_reports() noexcept { return installed.get(); }

std::vector<RankThread> Group::threads_here() const {
  std::vector<RankThread> threads;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const RankState* const state = states_[static_cast<std::size_t>(rank)].get();
    if (state != nullptr) threads.push_back({rank, state->thread.value(), state->is_busy.is_set()});
  }
  return threads;
}

void Group::answer(const std::vector<std::string>& stacks) noexcept {
  std::string texts;
  for (const std::string& stack : stacks) texts += (texts.empty() ? "" : std::string(1, kStackSeparator)) + stack;
  StackNote& note = control_->stacks(world_->index());
  note.texts.set(texts);
  note.answers.publish(note.answers.value() + 1);
  (*control_)->event.notify();
}

std::vector<std::string> Group::all_stacks() {
  std::vector<std::string> stacks(states_.size(), std::string(kSilent));
  const auto put = [&](int process, const std::vector<std::string>& texts) {
    std::size_t next = 0;
    for (int rank = 0; rank < num_ranks() && next < texts.size(); ++rank) {
      if (process_of(rank) == process) stacks[static_cast<std::size_t>(rank)] = texts[next++];
    }
  };
  const auto has_ranks_of = [&](int process) { return std::ranges::find(process_of_, process) != process_of_.end(); };
  const int here = world_ == nullptr ? 0 : world_->index();
  const auto end = sync::Clock::now() + kAnswerLimit;  // one deadline for all answers
  std::vector<std::uint64_t> before;
  if (world_ != nullptr) {
    for (int process = 0; process < world_->num_processes(); ++process) {
      before.push_back(control_->stacks(process).answers.value());
    }
    world_->ask_for_stacks();
  }
  // For a process that does not answer. A signal may interrupt system calls, and the stacks of running threads may be
  // garbled, so it is the last resort.
  const auto signal = [&](int process, int number) {
    const int pid = process == here ? getpid() : world_->pid_of(process);
    std::string text(sync::sleeps_uninterruptibly(pid) ? kUninterruptible : kSilent);
    if (number != 0 && sync::send_signal(pid, number)) text += kPrinted;
    put(process, std::vector<std::string>(states_.size(), text));
  };
  // For a process that cannot answer.
  const auto put_state = [&](int process) {
    const int pid = world_->pid_of(process);
    const std::string_view state = sync::is_stopped(pid)        ? ": stopped, by a signal or a debugger"
                                   : sync::is_dumping_core(pid) ? ": has crashed, and is writing a core dump"
                                                                : "";
    if (!state.empty()) put(process, std::vector<std::string>(states_.size(), std::string(state)));
    return !state.empty();
  };
  if (ThreadReports* const reports = thread_reports(); reports != nullptr) {
    const auto own = answer_of([reports, threads = threads_here()] { return reports->stacks(threads); }, end);
    if (own.has_value()) {
      put(here, *own);
    } else {
      signal(here, reports->stack_signal());
    }
  }
  for (int process = 0; process < static_cast<int>(before.size()); ++process) {
    if (process == here || !has_ranks_of(process)) continue;
    const StackNote& note = control_->stacks(process);
    const auto has_answered = [&] { return note.answers.has_reached(before[static_cast<std::size_t>(process)] + 1); };
    if (put_state(process)) continue;
    sync::wait_until((*control_)->event, patience_, end - sync::Clock::now(), nullptr,
                     [&] { return has_answered() || has_failed(); });
    if (has_failed()) return stacks;  // nothing is reported
    if (has_answered()) {
      put(process, parts_of(note.texts.get()));
    } else if (!put_state(process) && !world_->is_gone(process)) {
      signal(process, static_cast<int>(note.signal.value()));
    }
  }
  return stacks;
}

std::string Group::describe_ranks(const std::vector<bool>& is_missing) {
  const std::vector<std::string> stacks = all_stacks();
  std::string text;
  std::size_t shown = 0;
  int left_out = 0;
  for (const bool missing : {true, false}) {
    std::vector<bool> is_done(stacks.size());
    for (std::size_t first = 0; first < stacks.size(); ++first) {
      if (is_missing[first] != missing || is_done[first]) continue;
      std::vector<int> ranks;  // ranks with equal stacks
      for (std::size_t rank = first; rank < stacks.size(); ++rank) {
        if (is_missing[rank] != missing || stacks[rank] != stacks[first]) continue;
        ranks.push_back(static_cast<int>(rank));
        is_done[rank] = true;
      }
      if (shown++ < kMostStacks) {
        text += "\n  " + ranks_text(ranks) + (missing ? "" : ", waiting in this call") + stacks[first];
      } else {
        left_out += static_cast<int>(ranks.size());
      }
    }
  }
  if (left_out > 0) text += "\n  and " + std::to_string(left_out) + " more ranks";
  return text;
}

void Group::log_stall(std::string text) {
  if (has_failed()) return;
  text += "\nThis is reported once for each call, after RINGLET_STALL_SECONDS. The call ";
  text +=
      options_.timeout == sync::kForever ? "waits without a limit" : "fails after " + seconds_text(options_.timeout);
  log(text + " (RINGLET_TIMEOUT_SECONDS).");
}

}  // namespace ringlet::collectives
