// Walks over buffers block by block, for any number of inputs and outputs. Part of loops.hpp, with the same rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ringlet/kernels/kernels.hpp"
#include "ringlet/kernels/rows.hpp"
#include "ringlet/kernels/stores.hpp"

namespace ringlet::kernels {
namespace {

constexpr std::size_t kBlockBytes = 4096;      // part of a result that is buffered before streaming stores
constexpr std::size_t kTreeBlockBytes = 2048;  // block of partial results: kMaxPartials fit the L1 cache
constexpr std::size_t kMaxPartials = 14;       // needed for kMaxInputs inputs: see tree_block
constexpr std::size_t kMaxLanes = 8;

struct Range {
  std::size_t begin;
  std::size_t end;
};

// A block of partial results and the number of ranks that it combines.
struct Partial {
  alignas(kLineBytes) unsigned char values[kTreeBlockBytes];
  std::size_t num_ranks;
};

// The loop for this number of inputs: Loops has loops for 1, 2, 4 and 8.
constexpr int kNoLoop = -1;
constexpr int loop_for(std::size_t num_inputs) {
  return num_inputs == 1 ? 0 : num_inputs == 2 ? 1 : num_inputs == 4 ? 2 : num_inputs == 8 ? 3 : kNoLoop;
}

const void* at(const void* data, std::size_t bytes) { return static_cast<const unsigned char*>(data) + bytes; }
void* at(void* data, std::size_t bytes) { return static_cast<unsigned char*>(data) + bytes; }

// Combines one block of any number of inputs: a stack of partial results whose numbers of ranks decrease from bottom to
// top. Two entries with equal numbers become one, as in a binary counter; the remaining entries are combined from the
// top down. Narrow elements are widened first. Returns the bottom of the stack.
const void* tree_block(const Row& row, const void* const* inputs, std::size_t num_inputs, std::size_t begin,
                       std::size_t size, Partial* stack) {
  alignas(kLineBytes) float lanes[kMaxLanes][kTreeBlockBytes / sizeof(float)];
  std::size_t depth = 0;
  for (std::size_t rank = 0; rank < num_inputs;) {
    const std::size_t remaining = num_inputs - rank;
    const int loop = remaining >= 8 ? 3 : remaining >= 4 ? 2 : remaining >= 2 ? 1 : 0;
    const std::size_t width = std::size_t{1} << loop;
    void* const top = stack[depth].values;
    if (row.decode == nullptr) {
      row.partial->into_one[loop](inputs + rank, begin, size, &top, 0);
    } else {
      const void* widened[kMaxLanes];
      for (std::size_t k = 0; k < width; ++k) {
        row.decode(at(inputs[rank + k], begin * row.unit_bytes), size, lanes[k]);
        widened[k] = lanes[k];
      }
      row.partial->into_one[loop](widened, 0, size, &top, 0);
    }
    stack[depth++].num_ranks = width;
    rank += width;
    while (depth > 1 && stack[depth - 2].num_ranks == stack[depth - 1].num_ranks) {
      row.partial->merge(stack[depth - 2].values, stack[depth - 1].values, size);
      stack[--depth - 1].num_ranks *= 2;
    }
  }
  for (; depth > 1; --depth) row.partial->merge(stack[depth - 2].values, stack[depth - 1].values, size);
  return stack[0].values;
}

// Number of units until the first output reaches a line boundary: blocks that begin and end on lines write no partial
// lines, which are expensive for streaming stores.
std::size_t head_of(const void* output, std::size_t unit_bytes, std::size_t units, Store store) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(output) % kLineBytes;
  if (store == Store::kPlain || beyond == 0) return 0;
  const std::size_t head = (kLineBytes - beyond) / unit_bytes;
  return head < units ? head : units;
}

void store_block(const Row& row, const void* block, std::size_t begin, std::size_t size, std::span<void* const> outputs,
                 Store store) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    store_bytes(block, size * row.result_bytes, at(outputs.data()[k], begin * row.result_bytes), store);
  }
}

// Any number of inputs and outputs, block by block through scratch.
void walk_trees(const Row& row, std::span<const void* const> inputs, std::size_t units, std::span<void* const> outputs,
                Store store) {
  const std::size_t most = row.partial_bytes > row.result_bytes ? row.partial_bytes : row.result_bytes;
  const std::size_t block = kTreeBlockBytes / most;
  Partial stack[kMaxPartials];
  alignas(kLineBytes) unsigned char divided[kTreeBlockBytes];
  alignas(kLineBytes) unsigned char encoded[kTreeBlockBytes];
  std::size_t size = head_of(outputs.data()[0], row.result_bytes, units, store);
  for (std::size_t begin = 0; begin < units; begin += size) {
    if (begin > 0 || size == 0) size = units - begin < block ? units - begin : block;
    const void* values = tree_block(row, inputs.data(), inputs.size(), begin, size, stack);
    if (row.finish != nullptr) {
      row.finish(values, size, inputs.size(), divided);
      values = divided;
    }
    if (row.encode != nullptr) {
      row.encode(static_cast<const float*>(values), size, encoded);
      values = encoded;
    }
    store_block(row, values, begin, size, outputs, store);
  }
}

// Through scratch, with streaming stores to the outputs.
void walk_blocks(Fuse fuse, const Row& row, std::span<const void* const> inputs, Range units,
                 std::span<void* const> outputs) {
  alignas(kLineBytes) unsigned char finished[kBlockBytes];
  void* const scratch = finished;
  const std::size_t block = kBlockBytes / row.result_bytes;
  std::size_t size = head_of(at(outputs.data()[0], units.begin * row.result_bytes), row.result_bytes,
                             units.end - units.begin, Store::kStream);
  for (std::size_t begin = units.begin; begin < units.end; begin += size) {
    if (begin > units.begin || size == 0) size = units.end - begin < block ? units.end - begin : block;
    fuse(inputs.data(), begin, size, &scratch, 0);
    store_block(row, finished, begin, size, outputs, Store::kStream);
  }
}

bool begin_lines_together(std::span<void* const> outputs) {
  for (std::size_t k = 1; k < outputs.size(); ++k) {
    const auto difference =
        reinterpret_cast<std::uintptr_t>(outputs.data()[k]) - reinterpret_cast<std::uintptr_t>(outputs.data()[0]);
    if (difference % kLineBytes != 0) return false;
  }
  return true;
}

// With streaming stores: whole lines directly from registers if all outputs have the same line boundaries.
void walk_streaming(const Loops& loops, int loop, const Row& row, std::span<const void* const> inputs,
                    std::size_t units, std::span<void* const> outputs) {
  const Fuse fuse = loops.into_one[loop];
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(outputs.data()[0]) % row.result_bytes == 0;
  if (loops.stream[loop] == nullptr || !is_aligned || !begin_lines_together(outputs)) {
    return walk_blocks(fuse, row, inputs, {0, units}, outputs);
  }
  const std::size_t head = head_of(outputs.data()[0], row.result_bytes, units, Store::kStream);
  const std::size_t per_line = kLineBytes / row.result_bytes;
  const std::size_t lines = (units - head) / per_line;
  walk_blocks(fuse, row, inputs, {0, head}, outputs);
  loops.stream[loop](inputs.data(), head, lines, outputs.data(), outputs.size(), head);
  walk_blocks(fuse, row, inputs, {head + lines * per_line, units}, outputs);
}

void reduce(core::Op op, core::DType dtype, std::span<const void* const> inputs, std::size_t count,
            std::span<void* const> outputs, Store store) {
  const Row& row = kernels::row(op, dtype);
  const std::size_t units = count * row.units;
  const int loop = row.fused != nullptr ? loop_for(inputs.size()) : kNoLoop;
  if (loop == 0 && outputs.size() == 1 && outputs.data()[0] == inputs.data()[0]) return;  // one rank, in place
  if (loop == kNoLoop) {
    walk_trees(row, inputs, units, outputs, store);
  } else if (store == Store::kStream) {
    walk_streaming(*row.fused, loop, row, inputs, units, outputs);
  } else if (outputs.size() == 1) {
    row.fused->into_one[loop](inputs.data(), 0, units, outputs.data(), 0);
  } else if (outputs.size() == inputs.size() && row.fused->into_all[loop] != nullptr) {
    row.fused->into_all[loop](inputs.data(), 0, units, outputs.data(), 0);
  } else {
    walk_trees(row, inputs, units, outputs, store);
  }
  if (store == Store::kStream) end_streaming();
}

void widen(core::DType dtype, const void* mine, std::size_t count, void* partial) {
  // Widening does not depend on the operation. All dtypes have MAX except complex numbers, which are not widened.
  const Row& row = kernels::row(core::Op::kMax, dtype);
  if (row.decode != nullptr) {
    row.decode(mine, count, static_cast<float*>(partial));
  } else if (mine != partial && count > 0) {
    std::memcpy(partial, mine, count * core::size_of(dtype));
  }
}

void combine(core::Op op, core::DType dtype, const void* left, const void* mine, std::size_t count, void* partial) {
  const Row& row = kernels::row(op, dtype);
  if (row.decode == nullptr) {
    const void* const inputs[2] = {left, mine};
    row.partial->into_one[1](inputs, 0, count * row.units, &partial, 0);
    return;
  }
  constexpr std::size_t kBlock = kTreeBlockBytes / sizeof(float);
  alignas(kLineBytes) float lane[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = count - begin < kBlock ? count - begin : kBlock;
    row.decode(at(mine, begin * row.unit_bytes), size, lane);
    const void* const inputs[2] = {at(left, begin * sizeof(float)), lane};
    void* const output = at(partial, begin * sizeof(float));
    row.partial->into_one[1](inputs, 0, size, &output, 0);
  }
}

void finish(core::Op op, core::DType dtype, const void* partial, std::size_t count, std::size_t num_ranks,
            void* result) {
  const Row& row = kernels::row(op, dtype);
  const std::size_t units = count * row.units;
  if (row.encode == nullptr) {
    if (row.finish != nullptr) {
      row.finish(partial, units, num_ranks, result);
    } else if (partial != result && count > 0) {
      std::memcpy(result, partial, units * row.result_bytes);
    }
    return;
  }
  constexpr std::size_t kBlock = kTreeBlockBytes / sizeof(float);
  alignas(kLineBytes) float divided[kBlock];
  for (std::size_t begin = 0; begin < units; begin += kBlock) {
    const std::size_t size = units - begin < kBlock ? units - begin : kBlock;
    const auto* values = static_cast<const float*>(partial) + begin;
    if (row.finish != nullptr) {
      row.finish(values, size, num_ranks, divided);
      values = divided;
    }
    row.encode(values, size, at(result, begin * row.result_bytes));
  }
}

constexpr Kernels make_kernels(std::string_view name) { return {name, reduce, widen, combine, finish, copy}; }

}  // namespace
}  // namespace ringlet::kernels
