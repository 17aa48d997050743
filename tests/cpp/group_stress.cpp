// Sums by every algorithm, broadcasts and barriers, many times, on more ranks than cores, with every element checked.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/core/visit.hpp"

namespace {

using namespace ringlet;
using collectives::Algorithm;
using collectives::Buffer;
using stress::check;

// What one rank holds at element i of call `number`: small whole numbers, so that sums are exact in every dtype.
std::int64_t value_of(int rank, std::size_t number, std::size_t i) {
  return static_cast<std::int64_t>((static_cast<std::size_t>(rank + 1) * 31 + number * 7 + i) % 1009);
}

std::int64_t sum_of(int num_ranks, std::size_t number, std::size_t i) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < num_ranks; ++rank) sum += value_of(rank, number, i);
  return sum;
}

template <class T>
void check_values(const std::byte* data, int num_ranks, std::size_t number, std::size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), data, count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    check(values[i] == static_cast<T>(sum_of(num_ranks, number, i)), "every element is the sum over the ranks");
  }
}

class Rank {
 public:
  Rank(collectives::Group& group, int rank) : member_(group.member(rank)), rank_(rank) {}

  void call(std::size_t number, stress::Random& random) {
    constexpr std::array<std::size_t, 10> kCounts{0, 1, 3, 64, 251, 505, 2048, 4097, 40'000, 100'003};
    const std::size_t kind = random.below(16);
    const std::size_t count = kCounts[random.below(number % 50 == 0 ? kCounts.size() : 8)];
    const bool into_outputs = random.below(2) == 0;
    const bool fits_slot = count <= 250;
    const auto algorithm = static_cast<Algorithm>(random.below(fits_slot ? 4 : 3));
    constexpr std::array<core::DType, 4> kDTypes{core::DType::kFloat32, core::DType::kFloat64, core::DType::kInt32,
                                                 core::DType::kInt64};
    const core::DType dtype = kDTypes[random.below(kDTypes.size())];
    if (kind == 0) return member_.barrier("stress");
    core::visit_dtype(dtype, [&]<class T>() {
      if (kind == 1) {
        broadcast<T>(number, count, static_cast<int>(number) % member_.group().num_ranks(), random.below(2) == 0);
      } else {
        all_reduce<T>(number, count, dtype, algorithm, into_outputs);
        if (number % 8 == 0) reduce_many<T>(number, count, dtype);
      }
    });
  }

 private:
  template <class T>
  void all_reduce(std::size_t number, std::size_t count, core::DType dtype, Algorithm algorithm, bool into_outputs) {
    std::vector<T> input(count);
    for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<T>(value_of(rank_, number, i));
    const std::int64_t shape = static_cast<std::int64_t>(count);
    std::vector<T> output(into_outputs && number % 3 != 0 ? count : 0);
    T* const into = output.empty() ? input.data() : output.data();
    const Buffer part{.input = input.data(),
                      .output = into_outputs ? into : nullptr,
                      .count = count,
                      .dtype = dtype,
                      .shape = {&shape, 1}};
    const auto results = member_.all_reduce({&part, 1}, core::Op::kSum, algorithm);
    const auto* const data = results.empty() ? reinterpret_cast<const std::byte*>(into) : results.front()->data();
    check_values<T>(data, member_.group().num_ranks(), number, count);
  }

  // Several arrays in one pass, into the inputs.
  template <class T>
  void reduce_many(std::size_t number, std::size_t count, core::DType dtype) {
    std::vector<std::vector<T>> arrays(3);
    std::vector<Buffer> parts;
    const std::int64_t shape = static_cast<std::int64_t>(count);
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      for (std::size_t i = 0; i < count; ++i) arrays[k].push_back(static_cast<T>(value_of(rank_, number + k, i)));
      parts.push_back({.input = arrays[k].data(),
                       .output = arrays[k].data(),
                       .count = count,
                       .dtype = dtype,
                       .shape = {&shape, 1}});
    }
    member_.all_reduce(parts, core::Op::kSum);
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const auto* const data = reinterpret_cast<const std::byte*>(arrays[k].data());
      check_values<T>(data, member_.group().num_ranks(), number + k, count);
    }
  }

  template <class T>
  void broadcast(std::size_t number, std::size_t count, int root, bool describes) {
    std::vector<T> input(count);
    for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<T>(value_of(rank_, number, i));
    const std::int64_t shape = static_cast<std::int64_t>(count);
    constexpr auto kDType = sizeof(T) == 4 ? core::DType::kInt32 : core::DType::kInt64;  // moved, not computed with
    const Buffer part{.input = input.data(), .count = count, .dtype = kDType, .shape = {&shape, 1}};
    const bool has_buffers = rank_ == root || describes;
    const auto results = member_.broadcast({&part, has_buffers ? 1U : 0U}, has_buffers, root);
    check(results.size() == 1 && member_.record_of(root).buffers.front().count == count,
          "one array comes, of the root's size");
    std::vector<T> received(count);
    if (count > 0) std::memcpy(received.data(), results.front()->data(), count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      check(received[i] == static_cast<T>(value_of(root, number, i)), "every element is the root's");
    }
  }

  collectives::Member member_;
  int rank_;
};

void run(int num_ranks, std::size_t calls, bool from_interpreter) {
  collectives::Group group(num_ranks, {.timeout = std::chrono::seconds(60), .from_interpreter = from_interpreter});
  stress::on_ranks(num_ranks, [&](int index) {
    Rank rank(group, index);
    stress::Random random(static_cast<std::uint64_t>(num_ranks));
    for (std::size_t number = 0; number < calls; ++number) rank.call(number, random);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000) / 6;  // collectives_stress makes more of them
  run(8, calls / 4 * 3, false);
  run(8, calls / 4, true);
  run(2, calls / 8, false);
  for (const int num_ranks : {1, 3, 5, 17}) run(num_ranks, calls / 32, false);
  check(memory::result_pool().statistics().live_blocks == 0, "no result outlives its last holder");
}
