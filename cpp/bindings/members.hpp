// Groups and members held by Python objects.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/use_count.hpp"

namespace ringlet::bindings {

// A member that keeps its group alive until it is closed. Copies, such as a plan's copy, are closed with it.
class HeldMember : public collectives::Member {
  struct Seat {
    explicit Seat(std::shared_ptr<collectives::Group> held) : group(std::move(held)) {}
    std::shared_ptr<collectives::Group> group;
    pybind11::object gate;  // null without asynchronous calls
    sync::UseCount uses;
  };

 public:
  HeldMember(std::shared_ptr<collectives::Group> held, int rank)
      : Member(held->member(rank)), seat_(std::make_shared<Seat>(std::move(held))) {}

  // Must live during any use of the member. Throws core::ClosedError.
  class Use {
   public:
    explicit Use(const HeldMember& member) : seat_(*member.seat_) {
      if (!seat_.uses.begin()) throw core::ClosedError(closed_text(member.rank()));
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (seat_.uses.end()) seat_.group.reset();
    }

   private:
    Seat& seat_;
  };

  // Releases the group, at the latest when the last call in another thread ends; false if it was already closed.
  bool close(std::string_view reason) {
    try {
      const Use last(*this);
      depart(reason);
      return seat_->uses.close();
    } catch (const core::ClosedError&) {
      return false;
    }
  }

  // Calls of this member and its copies first call `gate`, which returns once asynchronous calls made before are done.
  void set_gate(pybind11::object gate) { seat_->gate = std::move(gate); }
  void wait_for_turn() const {
    if (seat_->gate) pybind11::object(seat_->gate)();
  }

  // Only during a use. Whether several ranks share an interpreter, and each has a core to spin on.
  bool takes_turns() const { return group().num_ranks_here() > 1 && group().num_ranks() <= sync::usable_cores(); }
  const std::shared_ptr<collectives::Group>& keeper() const { return seat_->group; }

 private:
  static std::string closed_text(int rank) {
    return "rank " + std::to_string(rank) +
           " has closed its group: make no calls after close(), or after the end of the with block.";
  }

  std::shared_ptr<Seat> seat_;
};

core::Op op_of(int number);
collectives::Algorithm algorithm_of(int number);

}  // namespace ringlet::bindings
