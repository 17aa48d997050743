#include "ringlet/collectives/call.hpp"

#include <algorithm>
#include <string_view>

namespace ringlet::collectives {

namespace {

// A running 64 bit hash; every step is a bijection of the state, followed by a mix that spreads each bit over the word.
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
  std::uint64_t state_ = 0x243F6A8885A308D3;  // the fraction of pi: any constant but 0
};

std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"AUTO", "RING", "DIRECT", "SMALL"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string describe_part(const Part& part) {
  std::string text(core::name_of(part.dtype));
  text += '[';
  for (std::size_t dim = 0; dim < part.shape.size(); ++dim) {
    if (dim > 0) text += ',';
    text += std::to_string(part.shape[dim]);
  }
  return text + ']';
}

std::string describe_parts(const Call& call) {
  if (!call.has_parts) return "None";
  constexpr std::size_t kShown = 4;
  if (call.parts.size() == 1) return describe_part(call.parts.front());
  std::string text = std::to_string(call.parts.size()) + " arrays";
  for (std::size_t i = 0; i < std::min(call.parts.size(), kShown); ++i) {
    text += i == 0 ? ": " : ", ";
    text += describe_part(call.parts[i]);
  }
  return call.parts.size() > kShown ? text + ", ..." : text;
}

}  // namespace

void Call::set_parts(std::span<const Part> from) {
  parts.assign(from.begin(), from.end());
  std::size_t num_dims = 0;
  for (const Part& part : from) num_dims += part.shape.size();
  dims.resize(num_dims);
  std::size_t used = 0;
  for (Part& part : parts) {
    const std::span<std::int64_t> copy = std::span(dims).subspan(used, part.shape.size());
    std::copy(part.shape.begin(), part.shape.end(), copy.begin());
    part.shape = copy;
    used += copy.size();
  }
}

std::size_t Call::total_input_bytes() const {
  std::size_t bytes = 0;
  for (const Part& part : parts) bytes += part.input_bytes();
  return bytes;
}

std::uint64_t Call::call_fingerprint() const {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(op) << 8 |
           static_cast<std::uint64_t>(algorithm) << 16 | static_cast<std::uint64_t>(has_outputs) << 24 |
           static_cast<std::uint64_t>(root) << 32);
  if (kind == Kind::kBarrier) hash.add(name);
  return hash.value();
}

std::uint64_t Call::parts_fingerprint() const {
  Hash hash;
  for (const Part& part : parts) {
    hash.add(static_cast<std::uint64_t>(part.dtype) | part.shape.size() << 8);
    for (const std::int64_t size : part.shape) hash.add(static_cast<std::uint64_t>(size));
  }
  return hash.add(parts.size()).value();
}

std::string Call::describe() const {
  const std::string into = has_outputs ? ", out=" : "";
  switch (kind) {
    case Kind::kAllReduce: {
      std::string text = "all_reduce(" + std::string(core::name_of(op)) + ", " + describe_parts(*this) + into;
      if (algorithm != Algorithm::kAuto) text += ", algorithm=" + std::string(name_of(algorithm));
      return text + ")";
    }
    case Kind::kBroadcast:
      return "broadcast(" + describe_parts(*this) + ", root=" + std::to_string(root) + into + ")";
    case Kind::kBarrier:
      break;
  }
  return name.empty() ? "barrier()" : "barrier('" + name + "')";
}

}  // namespace ringlet::collectives
