// Identities of the reduction operations: combining a value with an identity does not change the value.
#pragma once

#include <cstddef>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::collectives {

// Writes the identity of an operation `count` times.
void write_identities(core::Op op, core::DType dtype, std::size_t count, std::byte* to);

}  // namespace ringlet::collectives
