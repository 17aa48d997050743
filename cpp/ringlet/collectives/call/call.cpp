#include "ringlet/collectives/call/call.hpp"

#include <algorithm>
#include <string_view>

#include "ringlet/core/describe.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

namespace {

// A running 64-bit hash: every step is a bijection of the state, followed by a mix of each bit over the word.
class Hash {
 public:
  Hash& add(std::uint64_t value) noexcept {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
    state_ = (state_ ^ value) * kOdd;
    state_ ^= state_ >> 32;
    return *this;
  }
  Hash& add(std::string_view text) noexcept {
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return add(text.size());
  }
  std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3;  // digits of pi; any nonzero constant works
};

// Whether either all ranks or none must give outputs. In other calls, each rank decides for itself.
bool shares_results(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kAllGather || kind == Kind::kScatter || kind == Kind::kBroadcast;
}

std::string describe_part(const Buffer& part) { return core::describe(part.dtype, part.shape); }

std::string describe_parts(const Call& call) {
  if (!call.has_buffers) return "None";
  constexpr std::size_t kShown = 4;
  if (call.buffers.size() == 1) return describe_part(call.buffers.front());
  std::string text = std::to_string(call.buffers.size()) + " arrays";
  for (std::size_t i = 0; i < std::min(call.buffers.size(), kShown); ++i) {
    text += i == 0 ? ": " : ", ";
    text += describe_part(call.buffers[i]);
  }
  return call.buffers.size() > kShown ? text + ", ..." : text;
}

std::string describe_pairs(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kShown = 16;
  std::string text = "[";
  for (std::size_t i = 0; i + 1 < numbers.size() && i < kShown; i += 2) {
    text += (i > 0 ? ", (" : "(") + std::to_string(numbers[i]) + ", " + std::to_string(numbers[i + 1]) + ")";
  }
  return text + (numbers.size() > kShown ? ", ...]" : "]");
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[kNumKinds] = {
      "all_reduce", "reduce",    "reduce_scatter", "exclusive_scan",     "all_gather", "gather",
      "scatter",    "broadcast", "all_to_all",     "collective_permute", "barrier",    "split"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view kNames[kNumAlgorithms] = {"AUTO", "RING", "DIRECT", "SMALL"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

void check_supported(core::Op op, core::DType dtype) {
  if (core::is_supported(op, dtype)) return;
  throw core::ArgumentError(
      std::string(core::name_of(op)) + " is not supported for " + std::string(core::name_of(dtype)) +
      ": bool supports MIN, MAX, AND, OR and XOR, integers every operation, floats SUM, MEAN, MIN, MAX "
      "and PROD, complex numbers SUM, MEAN and PROD.");
}

void Call::reset(Kind new_kind) {
  kind = new_kind;
  op = core::Op::kSum;
  algorithm = Algorithm::kAuto;
  root = 0;
  axis = 0;
  has_outputs = false;
  has_buffers = true;
  is_ragged = false;
  continues = false;
  buffers.clear();
  numbers.clear();
  name.clear();
  series = 0;
}

void Call::set_buffers(std::span<const Buffer> from) {
  buffers.assign(from.begin(), from.end());
  has_outputs = !from.empty() && from.front().output != nullptr;
  std::size_t num_dims = 0;
  for (const Buffer& part : from) num_dims += part.shape.size();
  dims.resize(num_dims);
  std::size_t used = 0;
  for (Buffer& part : buffers) {
    const std::span<std::int64_t> copy = std::span(dims).subspan(used, part.shape.size());
    std::copy(part.shape.begin(), part.shape.end(), copy.begin());
    part.shape = copy;
    used += copy.size();
  }
}

std::size_t Call::total_input_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer& part : buffers) bytes += part.input_bytes();
  return bytes;
}

std::uint64_t Call::call_fingerprint() const {
  Hash hash;
  const bool compares_outputs = has_outputs && shares_results(kind);
  hash.add(static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(op) << 8 |
           static_cast<std::uint64_t>(algorithm) << 16 | static_cast<std::uint64_t>(compares_outputs) << 24 |
           static_cast<std::uint64_t>(is_ragged) << 25 | static_cast<std::uint64_t>(root) << 32 |
           static_cast<std::uint64_t>(axis) << 48);
  if (series != 0) hash.add(series);
  if (kind == Kind::kBarrier || !name.empty()) hash.add(name);
  if (kind == Kind::kPermute) {
    for (const std::int64_t number : numbers) hash.add(static_cast<std::uint64_t>(number));
  }
  return hash.value();
}

std::uint64_t Call::buffers_fingerprint() const {
  // The only dimension in which ranks may differ.
  const std::size_t free_dim = is_gather(kind)                        ? static_cast<std::size_t>(axis)
                               : kind == Kind::kAllToAll && is_ragged ? 0
                                                                      : SIZE_MAX;
  Hash hash;
  for (const Buffer& part : buffers) {
    hash.add(static_cast<std::uint64_t>(part.dtype) | part.shape.size() << 8);
    for (std::size_t dim = 0; dim < part.shape.size(); ++dim) {
      if (dim != free_dim) hash.add(static_cast<std::uint64_t>(part.shape[dim]));
    }
  }
  return hash.add(buffers.size()).value();
}

std::string Call::describe() const {
  if (kind == Kind::kBarrier) return name.empty() ? "barrier()" : "barrier('" + name + "')";
  if (!name.empty()) return name;
  if (kind == Kind::kSplit) return "split()";
  std::string text(name_of(kind));
  text += '(' + (is_reduction(kind) ? std::string(core::name_of(op)) + ", " : "") + describe_parts(*this);
  if (has_root(kind)) text += ", root=" + std::to_string(root);
  if (is_gather(kind)) text += ", axis=" + std::to_string(axis);
  if (kind == Kind::kPermute) text += ", pairs=" + describe_pairs(numbers);
  if (kind == Kind::kAllToAll && is_ragged) text += ", counts=";
  if (has_outputs && shares_results(kind)) text += ", out=";
  if (algorithm != Algorithm::kAuto) text += ", algorithm=" + std::string(name_of(algorithm));
  return text + ")";
}

}  // namespace ringlet::collectives
