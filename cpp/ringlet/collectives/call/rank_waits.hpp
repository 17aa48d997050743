// How a rank waits for the others in a call, and how the call ends if they do not come.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "ringlet/collectives/call/call_view.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

class RankWaits : public CallView {
 protected:
  RankWaits(Group& group, int rank, sync::Poll* poll) : CallView(group, rank), interruption_(poll) {}

  // Further waiting is useless: the group failed, or a missing rank has departed.
  bool is_hopeless() noexcept;

  // False if the time-out passed first. An interruption also ends the wait; raise_interruption() raises it.
  template <class Ready>
  bool wait_for(sync::Clock::duration limit, Ready&& is_ready) {
    try {
      return wait_until(limit, interruption_.poll(), is_ready);
    } catch (const sync::Interrupted&) {
      return true;
    }
  }
  // wait_for() with the group's time-out; a long wait is reported.
  template <class Ready>
  bool wait_for_ranks(Ready&& is_ready) {
    const auto stall = group_.options_.stall;
    const auto timeout =
        group_.options_.timeout == sync::kForever ? sync::kForever : group_.options_.timeout + mine().extra_time;
    if (stall >= timeout) return wait_for(timeout, is_ready);
    if (wait_for(stall, is_ready)) return true;
    const auto stalled_at = sync::Clock::now();
    report_stall();
    if (timeout == sync::kForever) return wait_for(sync::kForever, is_ready);
    return wait_for(timeout - stall - (sync::Clock::now() - stalled_at), is_ready);
  }
  // Waits for an event that is certain among threads, because all ranks are in the call. A process, however, may end or
  // be stopped in the middle of it; then the other ranks leave the call together, so that none reuses memory that
  // another still writes to. A completed call is valid even if the group failed meanwhile.
  template <class Ready>
  void wait_to_the_end(Ready&& is_ready) {
    if (!is_between_processes()) {
      wait_until(sync::kForever, nullptr, is_ready);
      return;
    }
    const auto is_over = [&] { return is_ready() || group_.has_failed(); };
    // A rank that has been interrupted waits only briefly.
    const bool in_time = interruption_.has_come() ? wait_for(kShortWait, is_over) : wait_for_ranks(is_over);
    if (is_ready()) return;
    if (interruption_.has_come()) {
      fail_interrupted();
    } else if (!in_time) {
      fail_late();
    }
    wait_for_leavers(is_ready);  // other ranks may still complete the call
    if (!is_ready()) raise_after_leaving();
  }
  void publish_core(int core) noexcept;

  // Each of these fails the group if it has not failed yet. The first does nothing without an interruption.
  void raise_interruption();
  void fail_interrupted();
  void fail_without_memory() noexcept;
  [[noreturn]] void give_up(bool timed_out);
  [[noreturn]] void give_up_unreachable();
  // Calls f(), which passes shared memory to other processes. If it fails or is interrupted, the group fails, since
  // other ranks may wait for this rank in the middle of f().
  template <class F>
  void or_fail(F&& f) {
    try {
      f();
    } catch (const sync::Interrupted&) {
      raise_interruption();
    } catch (const core::AbortedError& error) {
      group_.fail(Group::Cause::kAborted, name_of_call() + " failed: " + error.what());
      group_.raise_failure();
    }
  }

  // Raises the error of the group once no other rank works on this call.
  [[noreturn]] void leave_together();
  // Whether other ranks have left the call without this rank, which then accesses none of their memory.
  bool is_left_behind() const noexcept;
  std::string name_of_call() const;

  sync::Interruption interruption_;

 private:
  // Most ranks arrive within the first spins, before the cores of the ranks are compared.
  template <class Ready>
  bool wait_until(sync::Clock::duration limit, sync::Poll* poll, Ready&& is_ready) {
    if (sync::spin_until(std::min(group_.patience_.spins, kFirstSpins), is_ready)) return true;
    return sync::wait_until(control().event, patience(), limit, poll, is_ready);
  }
  // For a wait for other ranks, one of which may be on the core of this rank.
  sync::Patience patience() noexcept;
  bool misses_departed() const noexcept;
  void fail_late();
  void report_stall() noexcept;
  std::string describe_ranks(sync::Clock::duration waited);
  std::string describe_late() noexcept;
  std::string missing_ranks() const;
  std::string unfinished_ranks() const;
  std::string late_ranks() const;
  std::string process_text(int rank) const;

  // Prevents a rank from reusing its memory while another rank still works on it. Does not wait for stopped ranks,
  // because a stop may be indefinite.
  template <class Ready>
  void wait_for_leavers(Ready&& is_ready) {
    sync::Event& event = control().event;
    own_board().left_seq.publish(sequence_);
    event.notify();
    const auto end = sync::Clock::now() + kLeavingLimit;
    while (!sync::wait_until(event, group_.patience_, kShortWait, nullptr,
                             [&] { return is_ready() || others_have_left(); })) {
      if (sync::Clock::now() >= end || only_stopped_ones_stay()) return;
    }
  }
  bool has_left(int rank) const noexcept;  // or its process has ended: it no longer accesses buffers of this call
  bool others_have_left() const noexcept;
  bool only_stopped_ones_stay() const;
  [[noreturn]] void raise_after_leaving();

  // Waits for ranks in the middle of the work: longer than a running rank takes for a chunk, or for its share of one
  // pass, on a machine that is not heavily overloaded.
  static constexpr sync::Clock::duration kShortWait = std::chrono::milliseconds(100);
  static constexpr sync::Clock::duration kLeavingLimit = std::chrono::seconds(5);
  static constexpr int kFirstSpins = 10;

  bool saw_departed_ = false;
};

}  // namespace ringlet::collectives
