// Sum of one vector per thread, with the threads as ranks.
//
//   all_reduce [ranks] [elements]

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ringlet/collectives/group/member.hpp>

namespace {

namespace collectives = ringlet::collectives;
namespace core = ringlet::core;

// Element i of rank r is r + 1 + i % 1000: whole numbers, so that their sum is exact.
std::vector<float> vector_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<std::size_t>(rank) + 1 + i % 1000);
  return values;
}

collectives::Buffer buffer_of(std::span<const float> values, const std::int64_t& length) {
  return {.input = values.data(), .count = values.size(), .dtype = core::DType::kFloat32, .shape = {&length, 1}};
}

// The number of elements that are not P(P + 1)/2 + P * (i % 1000), the sum over r = 0 .. P - 1.
std::size_t count_wrong(std::span<const float> sums, int num_ranks) {
  std::size_t wrong = 0;
  const auto ranks = static_cast<std::size_t>(num_ranks);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    wrong += sums[i] != static_cast<float>(ranks * (ranks + 1) / 2 + ranks * (i % 1000));
  }
  return wrong;
}

// Run one rank; return the number of wrong elements.
std::size_t work(collectives::Group& group, int rank, std::size_t count) {
  collectives::Member member = group.member(rank);
  const std::vector<float> mine = vector_of(rank, count);
  const auto length = static_cast<std::int64_t>(count);
  const collectives::Buffer buffer = buffer_of(mine, length);
  // Without an output, all ranks share one read-only result, which lives while its block is referenced.
  const collectives::Results results = member.all_reduce({&buffer, 1}, core::Op::kSum);
  const auto* const sums = reinterpret_cast<const float*>(results.front()->data());
  if (rank == 0) {
    std::cout << "sum over " << group.num_ranks() << " ranks: " << sums[0] << " ... " << sums[count - 1] << std::endl;
  }
  return count_wrong({sums, count}, group.num_ranks());
}

int run(int num_ranks, std::size_t count) {
  if (count == 0) throw std::invalid_argument("expected at least one element");
  collectives::Group group(num_ranks, {.timeout = std::chrono::seconds(30)});
  std::vector<std::size_t> wrong(static_cast<std::size_t>(num_ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          wrong[static_cast<std::size_t>(rank)] = work(group, rank, count);
        } catch (const std::exception& error) {  // release the ranks that wait for this one
          group.abort("rank " + std::to_string(rank) + " failed: " + error.what());
          wrong[static_cast<std::size_t>(rank)] = count;
        }
      });
    }
  }
  if (const auto failure = group.failure()) std::cerr << *failure << '\n';
  for (const std::size_t elements : wrong) {
    if (elements > 0) return EXIT_FAILURE;
  }
  std::cout << "every rank got " << count << " right elements\n";
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? std::stoi(argv[1]) : 4, argc > 2 ? std::stoul(argv[2]) : 1'000'000);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
