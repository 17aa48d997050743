// Results that one rank allocates for others.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "ringlet/collectives/call/call_buffers.hpp"

namespace ringlet::collectives {

class CallResults : public CallBuffers {
 public:
  // Allocates one shared result per buffer unless there are outputs. Called before arriving, by one rank, which is the
  // same on all ranks.
  void announce_results();
  // Allocates one result for all ranks, or for this one alone.
  void announce_result(std::size_t bytes, bool is_for_all);
  // Allocates results of these sizes, one for each rank, which only that rank takes.
  void announce_for_each(std::span<const std::size_t> sizes);
  // Publishes one name to the other ranks, which find its address by announced_by() after all have arrived.
  void announce_name(BufferName place) { own_set().result_names.assign(1, place); }
  std::byte* announced_by(int rank);

  // The result that the announcer of this call allocated; valid after Round::arrive_for_work().
  std::byte* result_of(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index].here : set_of(announcer).results[index];
  }
  MappedBuffer mapped_result(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index]
                                  : MappedBuffer{result_of(announcer, index), BufferName(), announcer};
  }

  // This rank's hold on the results that `announcer` allocated.
  Results take_results(int announcer);
  // Marks the results of this call as unused because all ranks have determined that it does no work.
  void call_off() noexcept { goes_ = false; }

 protected:
  using CallBuffers::CallBuffers;

  // Between processes, after all have arrived: maps the buffers of all ranks and the results into this process.
  void resolve();
  // Between processes, at the end of the call: releases the holds that are not taken.
  void let_go() noexcept;

  bool goes_ = false;  // between processes: others may take results of this call

 private:
  // The ranks that take the results announced by this rank.
  enum class Takers { kNone, kAll, kOwn, kEachItsOwn };
  void announce_blocks(std::span<const std::size_t> sizes);
  template <class F>
  void for_each_hold(F&& f);
  void add_holds(Takers takers);
  bool takes_results();
  void map_results(int announcer, std::size_t num_buffers);

  bool has_taken_ = false;
  std::optional<int> announcer_;  // set once the addresses of its results are known
  Takers takers_ = Takers::kNone;
};

}  // namespace ringlet::collectives
