// A call that is equal on all ranks, drawn from random numbers that all of them share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "check.hpp"
#include "ringlet/collectives/call/call.hpp"

namespace ringlet::stress {

// Where results go.
enum class Output { kLibrary, kApart, kInPlace };

struct Plan {
  collectives::Kind kind = collectives::Kind::kBarrier;
  core::Op op = core::Op::kSum;
  core::DType dtype = core::DType::kFloat32;
  collectives::Algorithm algorithm = collectives::Algorithm::kAuto;
  Output output = Output::kLibrary;
  int root = 0;
  int axis = 0;
  bool is_ragged = false;
  bool describes = false;                  // receivers of a broadcast say what they expect
  std::vector<std::size_t> counts;         // of elements in each array of a reduction, broadcast or permutation
  std::vector<std::int64_t> shape;         // of what is gathered, scattered or exchanged, whose length along `axis`
  std::vector<std::int64_t> lengths;       // is this on each rank
  std::vector<std::int64_t> rows;          // all to all: [source * P + target]
  std::vector<std::int64_t> pairs;         // of a permutation
  std::vector<std::optional<int>> colors;  // of a split, by rank
  std::vector<std::int64_t> keys;
  std::uint64_t seed = 0;  // says what the ranks hold

  std::size_t num_elements(std::int64_t length) const {
    std::size_t count = 1;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      count *= static_cast<std::size_t>(static_cast<int>(dim) == axis ? length : shape[dim]);
    }
    return count;
  }
  std::size_t elements_before_axis() const {
    std::size_t count = 1;
    for (int dim = 0; dim < axis; ++dim) count *= static_cast<std::size_t>(shape[static_cast<std::size_t>(dim)]);
    return count;
  }
  std::size_t elements_behind_axis() const {
    std::size_t count = 1;
    for (auto dim = static_cast<std::size_t>(axis) + 1; dim < shape.size(); ++dim) {
      count *= static_cast<std::size_t>(shape[dim]);
    }
    return count;
  }
};

inline constexpr std::array kAllKinds{
    collectives::Kind::kAllReduce,     collectives::Kind::kReduce,    collectives::Kind::kReduceScatter,
    collectives::Kind::kExclusiveScan, collectives::Kind::kAllGather, collectives::Kind::kGather,
    collectives::Kind::kScatter,       collectives::Kind::kBroadcast, collectives::Kind::kAllToAll,
    collectives::Kind::kPermute,       collectives::Kind::kBarrier,   collectives::Kind::kSplit};

class Planner {
 public:
  Planner(Random& random, int num_ranks) : random_(random), num_ranks_(num_ranks) {}

  Plan draw(bool is_large = false) { return draw(kAllKinds[random_.below(kAllKinds.size())], is_large); }

  Plan draw(collectives::Kind kind, bool is_large = false) {
    using collectives::Kind;
    Plan plan;
    plan.kind = kind;
    plan.root = static_cast<int>(below_ranks());
    plan.output = static_cast<Output>(random_.below(3));
    plan.describes = random_.below(2) == 0;
    plan.dtype = static_cast<core::DType>(random_.below(core::kNumDTypes));
    if (collectives::is_reduction(kind)) draw_op(plan);
    if (kind == Kind::kSplit) draw_split(plan);
    if (kind == Kind::kPermute) draw_pairs(plan);
    if (collectives::is_gather(kind) || kind == Kind::kScatter || kind == Kind::kAllToAll) {
      draw_pieces(plan, is_large);
    } else if (kind != Kind::kSplit && kind != Kind::kBarrier) {
      draw_counts(plan, is_large);
    }
    plan.seed = random_.below(std::size_t{1} << 30);
    return plan;
  }

 private:
  std::size_t below_ranks() { return random_.below(static_cast<std::size_t>(num_ranks_)); }

  void draw_op(Plan& plan) {
    const bool is_scan = plan.kind == collectives::Kind::kExclusiveScan;
    do {
      plan.op = static_cast<core::Op>(random_.below(core::kNumOps));
    } while (!core::is_supported(plan.op, plan.dtype) || (is_scan && plan.op == core::Op::kMean));
  }

  void draw_counts(Plan& plan, bool is_large) {
    using collectives::Kind;
    constexpr std::array<std::size_t, 16> kCounts{0,   1,   2,   3,    7,    31,   64,     65,
                                                  125, 250, 505, 1000, 2048, 4097, 40'000, 100'003};
    const bool has_many = plan.kind == Kind::kAllReduce || plan.kind == Kind::kBroadcast;
    const std::size_t num_arrays = has_many && random_.below(4) == 0 ? 1 + random_.below(3) : 1;
    for (std::size_t part = 0; part < num_arrays; ++part) {
      std::size_t count = kCounts[random_.below(is_large ? kCounts.size() : kCounts.size() - 4)];
      const auto num_ranks = static_cast<std::size_t>(num_ranks_);
      if (plan.kind == Kind::kReduceScatter) count = (count + num_ranks - 1) / num_ranks * num_ranks;
      plan.counts.push_back(count);
    }
    if (plan.kind != Kind::kAllReduce) return;
    const std::size_t bytes =
        std::accumulate(plan.counts.begin(), plan.counts.end(), std::size_t{0}) * core::size_of(plan.dtype);
    plan.algorithm = static_cast<collectives::Algorithm>(random_.below(bytes <= 1900 ? 4 : 3));
  }

  // Sizes of one dimension, now and then of none.
  std::int64_t draw_length(bool is_large) {
    constexpr std::array<std::int64_t, 8> kLengths{0, 1, 2, 3, 5, 8, 30, 3000};
    return kLengths[random_.below(is_large ? kLengths.size() : kLengths.size() - 1)];
  }

  void draw_pieces(Plan& plan, bool is_large) {
    using collectives::Kind;
    const std::size_t num_dims = 1 + random_.below(3);
    for (std::size_t dim = 0; dim < num_dims; ++dim) {
      plan.shape.push_back(random_.below(16) == 0 ? 0 : 1 + static_cast<std::int64_t>(random_.below(5)));
    }
    if (collectives::is_gather(plan.kind)) plan.axis = static_cast<int>(random_.below(num_dims));
    plan.is_ragged = random_.below(2) == 0;
    const auto num_ranks = static_cast<std::size_t>(num_ranks_);
    plan.lengths.assign(num_ranks, draw_length(is_large));
    if (plan.is_ragged) {
      for (std::int64_t& length : plan.lengths) length = draw_length(is_large);
    }
    if (plan.kind != Kind::kAllToAll) return;
    plan.rows.assign(num_ranks * num_ranks, plan.lengths.front());
    if (plan.is_ragged) {
      for (std::int64_t& rows : plan.rows) rows = draw_length(false);
    }
  }

  std::vector<std::int64_t> draw_order() {
    std::vector<std::int64_t> order(static_cast<std::size_t>(num_ranks_));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    return order;
  }

  void draw_pairs(Plan& plan) {
    const std::vector<std::int64_t> sources = draw_order();
    const std::vector<std::int64_t> targets = draw_order();
    const std::size_t num_pairs = random_.below(2) == 0 ? sources.size() : random_.below(sources.size() + 1);
    for (std::size_t i = 0; i < num_pairs; ++i) plan.pairs.insert(plan.pairs.end(), {sources[i], targets[i]});
  }

  void draw_split(Plan& plan) {
    const std::size_t num_colors = 1 + random_.below(3);
    for (int rank = 0; rank < num_ranks_; ++rank) {
      const std::size_t color = random_.below(num_colors + 1);
      plan.colors.push_back(color == num_colors && random_.below(2) == 0 ? std::nullopt
                                                                         : std::optional(static_cast<int>(color) - 1));
      plan.keys.push_back(static_cast<std::int64_t>(random_.below(4)) - 2);
    }
  }

  Random& random_;
  int num_ranks_;
};

}  // namespace ringlet::stress
