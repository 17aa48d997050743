// Descriptions of the ranks in reports and errors of long waits: see stall.cpp.
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/collectives/call/rank_waits.hpp"
#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/sync/process/process.hpp"

namespace ringlet::collectives {

namespace {

constexpr std::string_view kStopped = ", stopped";

}  // namespace

// The ranks for which a call waits, for messages; if some of them are stopped, only these.
std::string RankWaits::unfinished_ranks() const {
  std::string stopped;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const std::string process = process_text(rank);
    if (!process.ends_with(kStopped)) continue;
    stopped += (stopped.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (" + process + ")";
  }
  return (stopped.empty() ? "other ranks" : stopped) + " to finish their part of it";
}

std::string RankWaits::late_ranks() const { return all_have_arrived() ? unfinished_ranks() : missing_ranks(); }

void RankWaits::fail_late() {
  const std::string description = describe_late();
  group_.fail(Group::Cause::kDeadline,
              name_of_call() + " waited " + seconds_text(group_.options_.timeout) + " for " + late_ranks() + "." +
                  (description.empty() ? " Check what they execute, or allow" : description + "\nAllow") +
                  " more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS.");
}

// Never throws: a failed report must not end the call.
void RankWaits::report_stall() noexcept {
  try {
    if (interruption_.has_come() || is_hopeless() || !control().stalled.claim(sequence_)) return;
    const std::string waiting =
        name_of_call() + " has waited " + seconds_text(group_.options_.stall) + " for " + late_ranks() + ".";
    group_.log_stall(waiting + describe_ranks(group_.options_.stall));
  } catch (const std::exception&) {
  }
}

// What all ranks execute. Called by the rank that has claimed `stalled`; the errors of all ranks show it, too.
std::string RankWaits::describe_ranks(sync::Clock::duration waited) {
  std::vector<bool> is_missing;
  for (const RankBoard& board : block().boards()) {
    is_missing.push_back(!has_arrived(board));
  }
  const std::string stacks = group_.describe_ranks(is_missing);
  Control& control = this->control();
  control.stacks.set("\nAfter " + seconds_text(waited) + ", the ranks executed:" + stacks);
  control.described.publish(sequence_);
  return stacks;
}

// For the error of a time-out: the text of the stall report or, without a report, what the ranks execute now. Never
// throws.
std::string RankWaits::describe_late() noexcept try {
  Control& control = this->control();
  const auto is_described = [&] { return control.described.has_reached(sequence_) || group_.has_failed(); };
  if (thread_reports() == nullptr) return {};
  if (!is_described() && control.stalled.claim(sequence_)) describe_ranks(group_.options_.timeout);
  (void)wait_for(kLeavingLimit, is_described);
  return control.described.has_reached(sequence_) ? control.stacks.get() : std::string();
} catch (const std::exception&) {
  return {};
}

// Between processes, the pid of a rank in another process, and whether it is stopped; else an empty text.
std::string RankWaits::process_text(int rank) const {
  if (group_.world_ == nullptr || group_.is_here(rank)) return {};
  const int pid = world().pid_of(process_of(rank));
  return "pid " + std::to_string(pid) + (sync::is_stopped(pid) ? std::string(kStopped) : "");
}

std::string RankWaits::name_of_call() const {
  return own_set().call.describe() + ", call " + std::to_string(sequence_) + " of rank " + std::to_string(rank_) + ",";
}

std::string RankWaits::missing_ranks() const {
  constexpr int kMostShown = 16;
  std::string text;
  int num_missing = 0;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const RankBoard& board = board_of(rank);
    if (has_arrived(board) || ++num_missing > kMostShown) continue;
    const std::uint64_t made = std::max(board.slots[0].sequence(), board.slots[1].sequence());
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (";
    if (board.has_departed.is_set()) {
      text += board.departure.get() + " ";
    } else if (const std::string process = process_text(rank); !process.empty()) {
      text += process + ", ";
    }
    text += "after " + std::to_string(made) + (made == 1 ? " call)" : " calls)");
  }
  if (num_missing > kMostShown) text += " and " + std::to_string(num_missing - kMostShown) + " more";
  return text.empty() ? "ranks that have arrived since" : text;
}

}  // namespace ringlet::collectives
