#include "ringlet/collectives/algorithms/single_controller.hpp"

#include <algorithm>
#include <string>

#include "ringlet/collectives/algorithms/chunks.hpp"
#include "ringlet/collectives/call/call.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"
#include "ringlet/sync/team.hpp"

namespace ringlet::collectives {

namespace {

// Minimum bytes, read and written, that several threads process: for fewer, waking a thread takes longer than the work.
constexpr std::size_t kWorthSharing = std::size_t{256} << 10;

// Maximum number of buffers that several threads process.
constexpr std::size_t kMostShared = 64;

struct Work {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  core::DType dtype;
  core::Op op;
  kernels::Store store;
  Ranges ranges;

  void operator()(Range range) const noexcept {
    const void* from[kMostShared];
    void* to[kMostShared];
    const std::size_t offset = range.begin * core::size_of(dtype);
    const std::size_t result_offset = range.begin * core::size_of(core::result_dtype(op, dtype));
    for (std::size_t k = 0; k < inputs.size(); ++k) from[k] = static_cast<const std::byte*>(inputs[k]) + offset;
    for (std::size_t k = 0; k < outputs.size(); ++k) to[k] = static_cast<std::byte*>(outputs[k]) + result_offset;
    kernels::active().reduce(op, dtype, {from, inputs.size()}, range.end - range.begin, {to, outputs.size()}, store);
  }
};

bool has_in_place(std::span<const void* const> inputs, std::span<void* const> outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const void* output) {
    return std::find(inputs.begin(), inputs.end(), output) != inputs.end();
  });
}

}  // namespace

void reduce_buffers(std::span<const void* const> inputs, std::size_t count, core::DType dtype, core::Op op,
                    std::span<void* const> outputs, int workers) {
  check_supported(op, dtype);
  if (inputs.empty() || inputs.size() > kernels::kMaxInputs) {
    throw core::ArgumentError("cannot combine " + std::to_string(inputs.size()) +
                              " arrays in one call: expected 1 to " + std::to_string(kernels::kMaxInputs) + ".");
  }
  if (count == 0 || outputs.empty()) return;
  const std::size_t result_bytes = count * core::size_of(core::result_dtype(op, dtype)) * outputs.size();
  const bool streams = result_bytes > kernels::streaming_threshold_bytes() && !has_in_place(inputs, outputs);
  const auto store = streams ? kernels::Store::kStream : kernels::Store::kPlain;
  const std::size_t input_bytes = count * core::size_of(dtype) * inputs.size();
  if (workers < 2 || input_bytes + result_bytes < kWorthSharing || inputs.size() > kMostShared ||
      outputs.size() > kMostShared) {
    return kernels::active().reduce(op, dtype, inputs, count, outputs, store);
  }
  const Work work{inputs, outputs, dtype, op, store, Ranges(count, core::size_of(dtype), workers)};
  sync::Team::shared().share(
      work.ranges.size(), workers - 1,
      [](void* context, std::size_t chunk) noexcept {
        const Work& shared = *static_cast<const Work*>(context);
        shared(shared.ranges[chunk]);
      },
      const_cast<Work*>(&work));
}

}  // namespace ringlet::collectives
