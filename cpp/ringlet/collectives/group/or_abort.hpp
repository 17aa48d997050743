// Failures in the middle of a call.
#pragma once

#include <new>

#include "ringlet/collectives/group/group.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

// Called by an exception handler: fails the group because a rank has no more memory, and rethrows the exception.
[[noreturn]] void abort_without_memory(Group& group, int rank);

// Between the rounds of a call, other ranks wait for this rank, so a failure of this rank must abort the group.
template <class F>
auto or_abort(Group& group, int rank, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    abort_without_memory(group, rank);
  } catch (const core::SharedMemoryError&) {
    abort_without_memory(group, rank);
  }
}

}  // namespace ringlet::collectives
