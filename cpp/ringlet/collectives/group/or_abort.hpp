// Failing in the middle of a call.
#pragma once

#include <new>
#include <string>

#include "ringlet/collectives/group/group.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

// Between the rounds of a call, other ranks wait for this rank, so a failure of this rank must abort the group.
template <class F>
auto or_abort(Group& group, int rank, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    group.abort("rank " + std::to_string(rank) + " ran out of memory during a call.");
    throw;
  } catch (const core::SharedMemoryError& error) {
    group.abort("rank " + std::to_string(rank) + " ran out of shared memory during a call: " + error.what());
    throw;
  }
}

}  // namespace ringlet::collectives
