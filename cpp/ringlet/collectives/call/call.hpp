// The arguments of one call of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"
#include "ringlet/memory/pool.hpp"

namespace ringlet::collectives {

enum class Kind : std::uint8_t {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kExclusiveScan,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kPermute,
  kBarrier,
  kSplit,
};
inline constexpr std::size_t kNumKinds = 12;
enum class Algorithm : std::uint8_t { kAuto, kRing, kDirect, kSmall };
inline constexpr std::size_t kNumAlgorithms = 4;
std::string_view name_of(Kind kind);
std::string_view name_of(Algorithm algorithm);

constexpr bool is_reduction(Kind kind) { return kind <= Kind::kExclusiveScan; }
constexpr bool has_root(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kGather || kind == Kind::kScatter || kind == Kind::kBroadcast;
}
// Whether the root's call determines the shapes and dtypes.
constexpr bool is_from_root(Kind kind) { return kind == Kind::kBroadcast || kind == Kind::kScatter; }
// Whether pieces of possibly unequal size along one dimension, Call::axis, are concatenated.
constexpr bool is_gather(Kind kind) { return kind == Kind::kAllGather || kind == Kind::kGather; }

// One array of a call. The caller owns the memory: contiguous, aligned to its elements, valid until the call returns.
// Without an output, the library allocates the result.
struct Buffer {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  core::DType dtype = core::DType::kFloat32;
  std::span<const std::int64_t> shape;  // for comparison and messages; its product is `count`
  std::int64_t output_length = 0;       // length of the output along the dimension in which ranks may differ

  std::size_t input_bytes() const noexcept { return count * core::size_of(dtype); }
};

// One block for each result without an output.
using Results = std::vector<memory::Block>;

// The record of a call, kept by the group so that other ranks can read it even after this rank has failed and left.
struct Call {
  Kind kind = Kind::kBarrier;
  core::Op op = core::Op::kSum;
  Algorithm algorithm = Algorithm::kAuto;
  int root = 0;
  int axis = 0;  // axis of a gather
  bool has_outputs = false;
  bool has_buffers = true;  // false: a receiver of a broadcast or scatter, which takes shape and dtype from the root
  bool is_ragged = false;
  bool continues = false;  // a later round of the operation that the rank's previous call began
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> dims;     // storage of the buffers' shapes
  std::vector<std::int64_t> numbers;  // scatter, all-to-all: rows for each rank; permute: pairs; split: see split.cpp
  std::string name;                   // name of a barrier; description of a reduce that is a step of another call
  // The number of the first call of the rank's series if this call is in a series: see Member::begin_series.
  std::uint32_t series = 0;

  // Makes this an empty call of a kind; keeps allocated memory.
  void reset(Kind new_kind);
  // Copies the buffers and their shapes; reuses its memory.
  void set_buffers(std::span<const Buffer> from);

  core::DType result_dtype(const Buffer& part) const {
    return is_reduction(kind) ? core::result_dtype(op, part.dtype) : part.dtype;
  }
  std::size_t result_bytes(const Buffer& part) const { return part.count * core::size_of(result_dtype(part)); }
  std::size_t total_input_bytes() const;

  // Equal on ranks that make the same call. There are two fingerprints because a receiver of a broadcast has only the
  // first.
  std::uint64_t call_fingerprint() const;
  std::uint64_t buffers_fingerprint() const;

  // Text for messages: all_reduce(SUM, float32[3,2]).
  std::string describe() const;
};

// Throws ArgumentError if the operation does not support this dtype.
void check_supported(core::Op op, core::DType dtype);

}  // namespace ringlet::collectives
