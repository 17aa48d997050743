// One rank that makes planned calls and checks what they give. What a call reads and writes is freed as soon as it has
// returned or raised, and has its size to the byte, so that a sanitizer sees who touches it too late or beside it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "check.hpp"
#include "expected.hpp"
#include "palette.hpp"
#include "plan.hpp"
#include "ringlet/collectives/group/member.hpp"

namespace ringlet::stress {

// An array of a rank: of its own, or in memory that the library gave.
class Memory {
 public:
  Memory() = default;
  explicit Memory(Array array) : array_(std::move(array)) {}
  explicit Memory(memory::Block block) : block_(std::move(block)) {}
  std::byte* get() const { return block_ != nullptr ? block_->data() : array_.get(); }

 private:
  Array array_;
  memory::Block block_;
};

class Caller {
 public:
  explicit Caller(collectives::Member member)
      : member_(member), rank_(member.rank()), num_ranks_(member.group().num_ranks()) {}

  collectives::Member& member() { return member_; }
  // From now on, arrays come from here.
  void use_arrays(std::function<Memory(std::size_t)> make) { make_array_ = std::move(make); }
  // From now on, outputs that lie apart are here, and so are inputs of ranks that get no result.
  void use_shared_memory(std::byte* memory) { shared_memory_ = memory; }

  void make(const Plan& plan, sync::Poll* poll = nullptr) {
    using collectives::Kind;
    switch (plan.kind) {
      case Kind::kAllReduce:
        return all_reduce(plan, poll);
      case Kind::kReduce:
        return reduce(plan, poll);
      case Kind::kReduceScatter:
        return reduce_scatter(plan, poll);
      case Kind::kExclusiveScan:
        return exclusive_scan(plan, poll);
      case Kind::kAllGather:
      case Kind::kGather:
        return gather(plan, poll);
      case Kind::kScatter:
        return scatter(plan, poll);
      case Kind::kBroadcast:
        return broadcast(plan, poll);
      case Kind::kAllToAll:
        return all_to_all(plan, poll);
      case Kind::kPermute:
        return permute(plan, poll);
      case Kind::kBarrier:
        return member_.barrier("stress", poll);
      case Kind::kSplit:
        split(plan, poll);
    }
  }

  // The part that this rank is in, as the plan says; null without a color.
  collectives::SubgroupMember split(const Plan& plan, sync::Poll* poll = nullptr) {
    const auto mine = static_cast<std::size_t>(rank_);
    collectives::SubgroupMember part = member_.split(plan.colors[mine], plan.keys[mine], poll);
    check((part.group != nullptr) == plan.colors[mine].has_value(), "who gives a color is in a part");
    if (part.group == nullptr) return part;
    int size = 0;
    int place = 0;
    for (std::size_t rank = 0; rank < plan.colors.size(); ++rank) {
      if (plan.colors[rank] != plan.colors[mine]) continue;
      ++size;
      place += std::pair(plan.keys[rank], rank) < std::pair(plan.keys[mine], mine) ? 1 : 0;
    }
    check(part.group->num_ranks() == size && part.rank == place, "a part has its ranks in the order of their keys");
    return part;
  }

 private:
  // A rank's array, and where the result goes.
  struct Buffers {
    Memory input;
    Memory own_output;
    std::byte* output = nullptr;

    std::byte* result(const collectives::Results& results) const {
      return output != nullptr ? output : results.front()->data();
    }
  };

  // What this rank holds, and an output of so many bytes that may be at `place` of it, if they fit there.
  Buffers buffers_for(const Plan& plan, std::size_t count, std::size_t result_bytes, std::size_t place = kNowhere,
                      std::size_t part = 0) const {
    Buffers buffers;
    const std::size_t bytes = count * core::size_of(plan.dtype);
    buffers.input = make_array_(bytes);
    Palette::of(plan.dtype).copy_to(buffers.input.get(), first_of(plan.seed, rank_, part), count);
    if (plan.output == Output::kLibrary) return buffers;
    const bool in_place = plan.output == Output::kInPlace && place != kNowhere && place + result_bytes <= bytes;
    if (!in_place) buffers.own_output = make_array_(result_bytes);
    buffers.output = in_place                    ? buffers.input.get() + place
                     : shared_memory_ != nullptr ? shared_memory_
                                                 : buffers.own_output.get();
    return buffers;
  }

  // The same for results that hold the rank's array at their byte `place`.
  Buffers buffers_within(const Plan& plan, std::size_t count, std::size_t result_bytes, std::size_t place) const {
    Plan apart = plan;
    apart.output = plan.output == Output::kLibrary ? Output::kLibrary : Output::kApart;
    Buffers buffers = buffers_for(apart, count, result_bytes);
    if (plan.output != Output::kInPlace || place == kNowhere || shared_memory_ != nullptr) return buffers;
    Palette::of(plan.dtype).copy_to(buffers.output + place, first_of(plan.seed, rank_), count);
    return buffers;
  }

  // What a rank passes that gets no result of what it passes.
  const std::byte* input_of_giver(const Buffers& buffers, const Plan& plan) const {
    return shared_memory_ != nullptr && rank_ != plan.root ? shared_memory_ : buffers.input.get();
  }

  static std::size_t result_bytes(const Plan& plan, std::size_t count) {
    const bool is_reduction = collectives::is_reduction(plan.kind);
    return count * core::size_of(is_reduction ? core::result_dtype(plan.op, plan.dtype) : plan.dtype);
  }

  // In place, results have the dtype of what they replace.
  static std::size_t place_for(const Plan& plan, std::size_t place = 0) {
    return core::result_dtype(plan.op, plan.dtype) == plan.dtype ? place : kNowhere;
  }

  void all_reduce(const Plan& plan, sync::Poll* poll) {
    std::vector<Buffers> buffers;
    std::vector<collectives::Buffer> parts;
    std::vector<std::int64_t> lengths(plan.counts.begin(), plan.counts.end());
    for (std::size_t part = 0; part < plan.counts.size(); ++part) {
      const std::size_t count = plan.counts[part];
      buffers.push_back(buffers_for(plan, count, result_bytes(plan, count), place_for(plan), part));
      parts.push_back(buffer_of(plan, buffers.back(), count, {&lengths[part], 1}));
    }
    const collectives::Results results = member_.all_reduce(parts, plan.op, plan.algorithm, poll);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const std::byte* const result = results.empty() ? buffers[part].output : results[part]->data();
      Expected(plan, num_ranks_, part).check_reduction(result, 0, plan.counts[part]);
    }
  }

  void reduce(const Plan& plan, sync::Poll* poll) {
    const std::size_t count = plan.counts.front();
    const auto length = static_cast<std::int64_t>(count);
    const Buffers buffers = buffers_for(plan, count, result_bytes(plan, count), place_for(plan));
    collectives::Buffer part = buffer_of(plan, buffers, count, {&length, 1});
    part.input = input_of_giver(buffers, plan);
    const collectives::Results results = member_.reduce(part, plan.op, plan.root, poll);
    if (rank_ == plan.root) return Expected(plan, num_ranks_).check_reduction(buffers.result(results), 0, count);
    check(results.empty(), "the root alone has a result");
  }

  void reduce_scatter(const Plan& plan, sync::Poll* poll) {
    const std::size_t count = plan.counts.front();
    const std::size_t share = count / static_cast<std::size_t>(num_ranks_);
    const std::size_t begin = share * static_cast<std::size_t>(rank_);
    const auto length = static_cast<std::int64_t>(count);
    const Buffers buffers =
        buffers_for(plan, count, result_bytes(plan, share), place_for(plan, begin * core::size_of(plan.dtype)));
    const collectives::Buffer part = buffer_of(plan, buffers, count, {&length, 1});
    const collectives::Results results = member_.reduce_scatter(part, plan.op, poll);
    Expected(plan, num_ranks_).check_reduction(buffers.result(results), begin, share);
  }

  void exclusive_scan(const Plan& plan, sync::Poll* poll) {
    const std::size_t count = plan.counts.front();
    const auto length = static_cast<std::int64_t>(count);
    const Buffers buffers = buffers_for(plan, count, result_bytes(plan, count), 0);
    const collectives::Buffer part = buffer_of(plan, buffers, count, {&length, 1});
    const collectives::Results results = member_.exclusive_scan(part, plan.op, poll);
    Expected(plan, num_ranks_).check_scan(buffers.result(results), rank_, count);
  }

  void gather(const Plan& plan, sync::Poll* poll) {
    const bool is_for_all = plan.kind == collectives::Kind::kAllGather;
    const auto rank = static_cast<std::size_t>(rank_);
    const std::size_t inner = plan.elements_behind_axis() * core::size_of(plan.dtype);
    std::int64_t total = 0;
    std::int64_t before = 0;
    for (std::size_t other = 0; other < plan.lengths.size(); ++other) {
      before += other < rank ? plan.lengths[other] : 0;
      total += plan.lengths[other];
    }
    std::vector<std::int64_t> shape = plan.shape;
    shape[static_cast<std::size_t>(plan.axis)] = plan.lengths[rank];
    const std::size_t count = plan.num_elements(plan.lengths[rank]);
    const std::size_t place = plan.elements_before_axis() == 1 ? static_cast<std::size_t>(before) * inner : kNowhere;
    const Buffers buffers = buffers_within(plan, count, result_bytes(plan, plan.num_elements(total)), place);
    collectives::Buffer part = buffer_of(plan, buffers, count, shape);
    const bool is_within = plan.output == Output::kInPlace && place != kNowhere && (is_for_all || rank_ == plan.root);
    part.input = is_within && shared_memory_ == nullptr ? buffers.output + place
                 : is_for_all                           ? buffers.input.get()
                                                        : input_of_giver(buffers, plan);
    if (plan.output != Output::kLibrary) part.output_length = total;
    const collectives::Results results =
        is_for_all ? member_.all_gather(part, plan.axis, poll) : member_.gather(part, plan.root, plan.axis, poll);
    if (is_for_all || rank_ == plan.root) return check_gathered(plan, buffers.result(results));
    check(results.empty(), "the root alone has a result");
  }

  void check_gathered(const Plan& plan, const std::byte* result) const {
    for (std::size_t row = 0; row < plan.elements_before_axis(); ++row) {
      for (int rank = 0; rank < num_ranks_; ++rank) {
        const std::size_t run =
            static_cast<std::size_t>(plan.lengths[static_cast<std::size_t>(rank)]) * plan.elements_behind_axis();
        check(Palette::of(plan.dtype).equals(result, first_of(plan.seed, rank) + row * run, run),
              "the pieces of all ranks lie beside each other");
        result += run * core::size_of(plan.dtype);
      }
    }
  }

  void scatter(const Plan& plan, sync::Poll* poll) {
    const auto rank = static_cast<std::size_t>(rank_);
    std::int64_t total = 0;
    std::int64_t before = 0;
    for (std::size_t other = 0; other < plan.lengths.size(); ++other) {
      before += other < rank ? plan.lengths[other] : 0;
      total += plan.lengths[other];
    }
    const bool is_root = rank_ == plan.root;
    const std::size_t own = plan.num_elements(plan.lengths[rank]);
    std::vector<std::int64_t> shape = plan.shape;
    shape[0] = is_root ? total : plan.lengths[rank];
    const std::size_t count = plan.num_elements(shape[0]);
    const Buffers buffers = buffers_for(plan, count, result_bytes(plan, own));
    collectives::Buffer part = buffer_of(plan, buffers, count, shape);
    if (plan.output != Output::kLibrary) part.output_length = plan.lengths[rank];
    if (!is_root) part.input = nullptr;
    if (!is_root && part.output == nullptr) part = {};
    const collectives::Results results =
        member_.scatter(part, is_root ? plan.lengths : std::vector<std::int64_t>(), plan.root, poll);
    const std::size_t begin = plan.num_elements(before);
    check(Palette::of(plan.dtype).equals(buffers.result(results), first_of(plan.seed, plan.root) + begin, own),
          "a rank gets its rows of the root's array");
  }

  void broadcast(const Plan& plan, sync::Poll* poll) {
    std::vector<Buffers> buffers;
    std::vector<collectives::Buffer> parts;
    std::vector<std::int64_t> lengths(plan.counts.begin(), plan.counts.end());
    for (std::size_t part = 0; part < plan.counts.size(); ++part) {
      const std::size_t count = plan.counts[part];
      buffers.push_back(buffers_for(plan, count, result_bytes(plan, count), 0, part));
      parts.push_back(buffer_of(plan, buffers.back(), count, {&lengths[part], 1}));
    }
    const bool has_buffers = rank_ == plan.root || plan.describes || plan.output != Output::kLibrary;
    if (!has_buffers) parts.clear();
    const collectives::Results results = member_.broadcast(parts, has_buffers, plan.root, poll);
    check(member_.record_of(plan.root).buffers.size() == plan.counts.size(), "as many arrays come as the root has");
    for (std::size_t part = 0; part < plan.counts.size(); ++part) {
      const std::byte* const result = results.empty() ? buffers[part].output : results[part]->data();
      check(Palette::of(plan.dtype).equals(result, first_of(plan.seed, plan.root, part), plan.counts[part]),
            "every array is the root's");
    }
  }

  void all_to_all(const Plan& plan, sync::Poll* poll) {
    const auto rank = static_cast<std::size_t>(rank_);
    const auto num_ranks = static_cast<std::size_t>(num_ranks_);
    const std::span<const std::int64_t> sent = std::span(plan.rows).subspan(rank * num_ranks, num_ranks);
    std::int64_t received = 0;
    for (std::size_t source = 0; source < num_ranks; ++source) received += plan.rows[source * num_ranks + rank];
    std::vector<std::int64_t> shape = plan.shape;
    shape[0] = std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
    const std::size_t count = plan.num_elements(shape[0]);
    const Buffers buffers = buffers_for(plan, count, result_bytes(plan, plan.num_elements(received)));
    collectives::Buffer part = buffer_of(plan, buffers, count, shape);
    if (plan.output != Output::kLibrary) part.output_length = received;
    const collectives::Results results =
        member_.all_to_all(part, plan.is_ragged ? sent : std::span<const std::int64_t>(), plan.is_ragged, poll);
    check(member_.rows_received() == received, "a rank knows how many rows came");
    const std::byte* result = buffers.result(results);
    for (std::size_t source = 0; source < num_ranks; ++source) {
      const auto row = plan.rows.begin() + static_cast<std::ptrdiff_t>(source * num_ranks);
      const std::int64_t before = std::accumulate(row, row + rank_, std::int64_t{0});
      const std::size_t run = plan.num_elements(row[rank_]);
      check(Palette::of(plan.dtype)
                .equals(result, first_of(plan.seed, static_cast<int>(source)) + plan.num_elements(before), run),
            "the blocks that came lie in the order of their ranks");
      result += run * core::size_of(plan.dtype);
    }
  }

  void permute(const Plan& plan, sync::Poll* poll) {
    const std::size_t count = plan.counts.front();
    const auto length = static_cast<std::int64_t>(count);
    const Buffers buffers = buffers_for(plan, count, result_bytes(plan, count));
    const collectives::Results results =
        member_.permute(buffer_of(plan, buffers, count, {&length, 1}), plan.pairs, poll);
    const std::byte* const result = buffers.result(results);
    for (std::size_t i = 0; i < plan.pairs.size(); i += 2) {
      if (plan.pairs[i + 1] != rank_) continue;
      const std::size_t begin = first_of(plan.seed, static_cast<int>(plan.pairs[i]));
      return check(Palette::of(plan.dtype).equals(result, begin, count), "a target gets the source's array");
    }
    const bool is_zero =
        std::all_of(result, result + result_bytes(plan, count), [](std::byte b) { return b == std::byte{0}; });
    check(is_zero, "who is nobody's target gets zeros");
  }

  static collectives::Buffer buffer_of(const Plan& plan, const Buffers& buffers, std::size_t count,
                                       std::span<const std::int64_t> shape) {
    return {.input = buffers.input.get(),
            .output = buffers.output,
            .count = count,
            .dtype = plan.dtype,
            .shape = shape,
            .output_length = 0};
  }

  static constexpr std::size_t kNowhere = SIZE_MAX;
  collectives::Member member_;
  int rank_;
  int num_ranks_;
  std::byte* shared_memory_ = nullptr;
  std::function<Memory(std::size_t)> make_array_ = [](std::size_t bytes) { return Memory(new_array(bytes)); };
};

}  // namespace ringlet::stress
