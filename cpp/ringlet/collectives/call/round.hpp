// One call in progress: the interface of the algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "ringlet/collectives/algorithms/chunks.hpp"
#include "ringlet/collectives/call/call_results.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::collectives {

// Constructed by every rank for every call, destroyed at its end. Inherits the view of the ranks (CallView), their
// buffers (CallBuffers) and their results (CallResults), which all use RankWaits.
class Round : public CallResults {
 public:
  Round(Group& group, int rank, sync::Poll* poll);
  ~Round();

  // Publishes this rank's call, waits for all ranks, and compares the calls. Afterwards other ranks' slots may be read.
  void arrive() { await_others(Purpose::kSlots); }
  // arrive(), after which the kinds of memory of the ranks of other processes are known.
  void arrive_to_tell() { await_others(Purpose::kNames); }
  // arrive(), after which other ranks' buffers may be read and written until the work is done, so no rank may leave
  // before that.
  void arrive_for_work() { await_others_for_work({}); }
  // arrive_for_work() between processes, for an algorithm that stages private buffers itself: `stage()` runs
  // before arriving, after the buffers have names.
  template <class Stage>
  void arrive_for_work(Stage&& stage) {
    await_others_for_work({[](void* context) { (*static_cast<std::remove_reference_t<Stage>*>(context))(); }, &stage});
  }

  // Takes chunks until none is left, then waits until all are finished. `work` processes the chunk with a number.
  template <class Work>
  void process_chunks(std::size_t num_chunks, Work&& work);
  template <class Work>
  void process_chunks(const Chunks& chunks, Work&& work) {
    process_chunks(chunks.size(), [&](std::size_t chunk) {
      for (const Run& run : chunks[chunk]) work(run);
    });
  }
  template <class Work>
  void process_chunks(const Ranges& ranges, Work&& work) {
    process_chunks(ranges.size(), [&](std::size_t chunk) { work(ranges[chunk]); });
  }

  // Between processes: the same for a fixed part of the work for each rank. Calls combine(), waits until all ranks have
  // done so, and calls take(). With `reads_private`, it then waits again because other ranks read its private buffers.
  template <class Combine, class Take>
  void process_shares(bool reads_private, Combine&& combine, Take&& take);

  // Between processes, after the work: copies results from staged memory to the outputs of this rank, and publishes
  // that it accesses no more memory of other ranks.
  void leave_work();

  // Ends a call that took place. If a wait was interrupted, fails the group and raises the interruption.
  void finish();
  // Fails the group because of an argument that every rank finds invalid. Before any work.
  [[noreturn]] void refuse(const std::string& problem);

 private:
  void publish(Purpose purpose, Staging staging = {});
  void begin_record(const sync::Slot& slot) noexcept;  // see recording.cpp
  void await_others(Purpose purpose);
  void await_others_for_work(Staging staging);
  bool propose_to_leave();  // false if the call takes place nevertheless
  void compare();
  std::vector<std::string> call_sites();
  sync::WorkQueue& queue_of(int rank) noexcept { return board_of(rank).queues[set_]; }
  bool is_finished(std::size_t chunks) const noexcept;
  void finish_work(std::size_t finished, std::size_t num_chunks);
  // Publishes that this rank has read other ranks' private buffers, and waits until all ranks have.
  void wait_for_readers();

  // Maximum wait after a mismatch for the other ranks to publish their places in the program.
  static constexpr sync::Clock::duration kSiteLimit = std::chrono::milliseconds(300);

  bool is_complete_ = false;
  std::uint64_t record_ = 0;  // number of the call's record in the flight recorder
};

template <class Work>
void Round::process_chunks(std::size_t num_chunks, Work&& work) {
  const auto first_of = [&](int rank) { return share_begin(num_chunks, rank, num_ranks()); };
  std::size_t finished = 0;
  try {
    for (int i = 0; i < num_ranks(); ++i) {  // this rank's share first, then chunks that others have not begun
      const int owner = (rank_ + i) % num_ranks();
      const std::size_t first = first_of(owner);
      const std::size_t share = first_of(owner + 1) - first;
      for (std::size_t taken = 0; (taken = queue_of(owner).take(share)) < share; ++finished) {
        if (is_left_behind()) throw Unreachable();
        sync::fault_point();
        work(first + taken);
      }
    }
    if (is_between_processes()) {
      if (has_private_outputs()) {
        writes_own_output_ = true;
        for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) work(chunk);
      }
      // If this rank did no work, other ranks may have completed the call and exited normally.
      if (finished > 0 || writes_own_output_) check_sources();
    }
  } catch (const Unreachable&) {
    give_up_unreachable();  // its chunks stay unfinished: data that it has read may be wrong, so the call must not
                            // complete
  }
  finish_work(finished, num_chunks);
  if (!is_between_processes()) return;
  if (has_private_outputs()) wait_for_readers();
  leave_work();
}

template <class Combine, class Take>
void Round::process_shares(bool reads_private, Combine&& combine, Take&& take) {
  try {
    combine();
    check_sources();
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  finish_work(1, static_cast<std::size_t>(num_ranks()));
  try {
    take();
    if (reads_private) check_sources();  // else other ranks may have left, but staged memory is unchanged
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  if (reads_private) wait_for_readers();
  own_board().left_seq.publish(sequence_);
}

}  // namespace ringlet::collectives
