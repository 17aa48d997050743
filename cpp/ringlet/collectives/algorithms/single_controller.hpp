// Collectives of one thread that holds the buffers of all ranks.
#pragma once

#include <cstddef>
#include <span>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::collectives {

// Combines the buffers in the tree order, inputs[k] in the position of rank k, and writes the result, of
// result_dtype(op, dtype), to every output. An output may be one of the inputs, or share no byte with any of them. Up
// to `workers` threads, including this one, share the work. P*S bytes read, S written for each output.
void reduce_buffers(std::span<const void* const> inputs, std::size_t count, core::DType dtype, core::Op op,
                    std::span<void* const> outputs, int workers = 1);

}  // namespace ringlet::collectives
