#include "ringlet/collectives/call/rank_waits.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/sync/process/placement.hpp"
#include "ringlet/sync/process/process.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kSpinsApart = 5000;
constexpr int kWaitsApart = 8;
constexpr std::size_t kLargeCall = std::size_t{256} << 10;
// Doubled by each move, until the ranks have stayed apart for some waits.
constexpr sync::Clock::duration kLeastBetweenMoves = std::chrono::microseconds(500);
constexpr sync::Clock::duration kMostBetweenMoves = std::chrono::milliseconds(4);

}  // namespace

bool RankWaits::misses_departed() const noexcept {
  if (!control().has_departures.is_set()) return false;
  for (const RankBoard& board : block().boards()) {
    // In this order: a rank that arrived and then departed is not missing.
    if (board.has_departed.is_set() && !has_arrived(board)) return true;
  }
  return false;
}

bool RankWaits::is_hopeless() noexcept {
  saw_departed_ = saw_departed_ || misses_departed();  // the error names departed ranks even if they arrive now
  return saw_departed_ || group_.has_failed();
}

void RankWaits::publish_core(int core) noexcept {
  const auto number = static_cast<std::uint64_t>(core + 1);
  if (sync::RelaxedNumber& own = own_board().core; own.value() != number) own.set(number);
}

// Ranks may share a core even if there are enough cores, for example after a sleep, and the system may leave them there
// as long as each parks in turn. A rank that spins on the core of the rank that it waits for delays it, and one that
// yields may lose the core to another program for milliseconds; so it parks immediately. The rank with the higher
// number first moves to a core without ranks. If other programs run, this makes small calls faster, but in large calls
// a rank that loses its core in the middle of the work delays the others more than a rank that shares a core with them.
//
// During a move and after it, ranks spin for longer than a move and a wake-up take. If one parked meanwhile, the other
// would wake it, and the system often moves a thread to the core of its waker.
sync::Patience RankWaits::patience() noexcept {
  const sync::Patience usual = group_.patience_;
  if (usual.spins == 0) return usual;
  const int core = sync::current_core();
  if (core == sync::kUnknownCore) return usual;
  bool is_shared = false;
  bool is_higher = false;
  bool is_moving = false;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const std::uint64_t number = board_of(rank).core.value();
    is_moving |= number == 0;
    if (rank == rank_ || number != static_cast<std::uint64_t>(core + 1)) continue;
    is_shared = true;
    is_higher |= rank < rank_;
  }
  if (!is_shared) {
    const bool was_patient = mine().waits_apart > 0;
    if (was_patient && --mine().waits_apart == 0) mine().between_moves = kLeastBetweenMoves;
    return was_patient || is_moving ? sync::Patience{.spins = kSpinsApart} : usual;
  }
  if (is_higher && mine().next_move.pass(mine().between_moves) &&
      (call().total_input_bytes() < kLargeCall || sync::has_idle_core())) {
    sync::CoreSet taken;
    for (const RankBoard& board : block().boards()) {
      if (const std::uint64_t number = board.core.value(); number > 0 && number <= taken.size()) taken.set(number - 1);
    }
    publish_core(sync::kUnknownCore);
    const bool has_moved = sync::move_to_core_outside(taken);
    publish_core(sync::current_core());
    if (has_moved) {
      mine().waits_apart = kWaitsApart;
      mine().between_moves = std::min(2 * mine().between_moves, kMostBetweenMoves);
      return {.spins = kSpinsApart};
    }
  }
  return {};
}

void RankWaits::raise_interruption() {
  if (!interruption_.has_come()) return;
  fail_interrupted();
  interruption_.rethrow();
}

void RankWaits::fail_without_memory() noexcept {
  try {
    group_.fail(Group::Cause::kAborted, "rank " + std::to_string(rank_) + " ran out of memory during a call.");
  } catch (const std::bad_alloc&) {
    group_.fail(Group::Cause::kAborted, "out of memory");  // fits the string without allocation
  }
}

void RankWaits::fail_interrupted() { group_.fail(Group::Cause::kAborted, name_of_call() + " was interrupted."); }

void RankWaits::give_up(bool timed_out) {
  if (interruption_.has_come()) {
    group_.fail(Group::Cause::kAborted,
                name_of_call() + " was interrupted while it waited for " + missing_ranks() + ".");
    interruption_.rethrow();
  }
  if (timed_out) {
    fail_late();
  } else if (saw_departed_) {
    group_.fail(Group::Cause::kMismatch, name_of_call() +
                                             " waits for ranks that make no more calls: " + missing_ranks() +
                                             ". Make the same calls in the same order on every rank.");
  }
  // The rank that cancelled the call records the cause before it leaves; if its process ends first, its end is the
  // cause.
  const auto limit = std::min<sync::Clock::duration>(group_.options_.timeout, kLeavingLimit);
  const bool is_stated = wait_for(limit, [this] { return group_.has_failed(); });
  raise_interruption();
  if (!is_stated) {
    group_.fail(
        Group::Cause::kAborted,
        name_of_call() + " was cancelled by a rank that did not report the cause within " + seconds_text(limit) + ".");
  }
  group_.raise_failure(name_of_call());
}

// Either the process that owns the memory has ended, which will be detected, or the system no longer allows the read.
void RankWaits::give_up_unreachable() {
  constexpr std::chrono::seconds kNoticed{1};
  const bool is_noticed = wait_for(kNoticed, [&] { return group_.has_failed(); });
  if (interruption_.has_come()) {
    fail_interrupted();
  } else if (!is_noticed) {
    group_.fail(Group::Cause::kAborted, name_of_call() + " can no longer access the memory of another process.");
  }
  leave_together();
}

// A process may continue to work after its connection has closed, so only its end counts.
bool RankWaits::has_left(int rank) const noexcept {
  const RankBoard& board = board_of(rank);
  return board.left_seq.has_reached(sequence_) || board.over.has_reached(sequence_) ||
         world().reclaim_policy()->has_ended(process_of(rank));
}

bool RankWaits::others_have_left() const noexcept {
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank != rank_ && !has_left(rank)) return false;
  }
  return true;
}

// No rank completes a call before all of its work is done, so a rank that is past this call has failed.
bool RankWaits::is_left_behind() const noexcept {
  if (!is_between_processes() || !group_.has_failed()) return false;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank != rank_ && board_of(rank).over.has_reached(sequence_)) return true;
  }
  return false;
}

bool RankWaits::only_stopped_ones_stay() const {
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (rank == rank_ || has_left(rank)) continue;
    if (group_.is_here(rank) || !sync::is_stopped(world().pid_of(process_of(rank)))) return false;
  }
  return true;
}

void RankWaits::leave_together() {
  wait_for_leavers([] { return false; });
  raise_after_leaving();
}

void RankWaits::raise_after_leaving() {
  if (!others_have_left()) group_.keep_memory(rank_, sequence_);
  raise_interruption();
  group_.raise_failure(name_of_call());
}

}  // namespace ringlet::collectives
