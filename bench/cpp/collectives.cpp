// How long the collectives beside all-reduce take between threads, without an interpreter.
//
//   collectives --ranks 4 --bytes 8388608 --what all_gather:shared,all_gather:out,reduce_scatter:in_place
//
// --bytes is the larger of the two buffers of a rank: what it passes in, or what it gets. All roots are rank 0; a
// permutation sends from every rank to the next one. Every collective and variant is verified before and after it is
// timed; a wrong answer ends the program with status 3 and no time. Prints JSON.

#include <cstring>
#include <iostream>
#include <memory>

#include "names.hpp"
#include "rank_timer.hpp"
#include "values.hpp"

namespace ringlet::bench {
namespace {

using collectives::Buffer;
using collectives::Results;
using core::DType;
using core::Op;

enum class Collective {
  kReduce,
  kReduceScatter,
  kExclusiveScan,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kPermute,
};

const std::map<std::string, Collective> kCollectives{{"reduce", Collective::kReduce},
                                                     {"reduce_scatter", Collective::kReduceScatter},
                                                     {"exclusive_scan", Collective::kExclusiveScan},
                                                     {"all_gather", Collective::kAllGather},
                                                     {"gather", Collective::kGather},
                                                     {"scatter", Collective::kScatter},
                                                     {"broadcast", Collective::kBroadcast},
                                                     {"all_to_all", Collective::kAllToAll},
                                                     {"collective_permute", Collective::kPermute}};

constexpr int kRoot = 0;

struct Settings {
  Schedule schedule;
  std::size_t bytes;
  DType dtype;
  Op op;
};

// Counts are of elements: `whole` those of the larger buffer, `block` those of a rank's part of it.
class Call final : public Subject {
 public:
  Call(const Settings& settings, const Buffers& inputs, const Buffers& outputs, Collective collective, Variant variant)
      : settings_(settings),
        inputs_(inputs),
        outputs_(variant == Variant::kInPlace ? inputs : outputs),
        collective_(collective),
        variant_(variant),
        num_ranks_(settings.schedule.num_ranks),
        whole_(settings.bytes / core::size_of(settings.dtype)),
        block_(whole_ / static_cast<std::size_t>(num_ranks_)),
        result_(is_reduction() ? core::result_dtype(settings.op, settings.dtype) : settings.dtype),
        input_shape_{static_cast<std::int64_t>(input_count())},
        output_shape_{static_cast<std::int64_t>(output_count())},
        rows_(static_cast<std::size_t>(num_ranks_), static_cast<std::int64_t>(block_)),
        values_(make_values(settings.dtype, settings.op, num_ranks_, false)) {
    if (variant == Variant::kInPlace && (!may_be_in_place() || result_ != settings.dtype)) {
      throw std::invalid_argument("this collective cannot work in place");
    }
    for (int rank = 0; rank < num_ranks_; ++rank) {
      pairs_.insert(pairs_.end(), {rank, (rank + 1) % num_ranks_});
    }
  }

  void fill(int rank) override {
    if (std::byte* const output = output_of(rank); output != nullptr) std::memset(output, 0, output_bytes());
    if (gives(rank)) values_->fill(rank, input_count(), input_of(rank));
  }

  void clear(int rank) override {
    if (gives(rank)) std::memset(input_of(rank), 0, input_count() * core::size_of(settings_.dtype));
  }

  Results call(collectives::Member& member) override {
    const Buffer part = buffer_of(member.rank());
    switch (collective_) {
      case Collective::kReduce:
        return member.reduce(part, settings_.op, kRoot);
      case Collective::kReduceScatter:
        return member.reduce_scatter(part, settings_.op);
      case Collective::kExclusiveScan:
        return member.exclusive_scan(part, settings_.op);
      case Collective::kAllGather:
        return member.all_gather(part, 0);
      case Collective::kGather:
        return member.gather(part, kRoot, 0);
      case Collective::kScatter:
        return member.scatter(
            part, gives(member.rank()) ? std::span<const std::int64_t>(rows_) : std::span<const std::int64_t>(), kRoot);
      case Collective::kBroadcast: {
        const bool has_buffers = gives(member.rank()) || variant_ != Variant::kShared;
        return member.broadcast({&part, has_buffers ? 1U : 0U}, has_buffers, kRoot);
      }
      case Collective::kAllToAll:
        return member.all_to_all(part, {}, false);
      case Collective::kPermute:
        break;
    }
    return member.permute(part, pairs_);
  }

  std::byte* output_of(int rank) override {
    if (variant_ == Variant::kShared || !takes(rank)) return nullptr;
    // In place, a block lies where it belongs in the larger buffer.
    const bool is_inside = variant_ == Variant::kInPlace && collective_ == Collective::kReduceScatter;
    return outputs_.of(rank) + (is_inside ? offset_of(rank) : 0);
  }

  bool is_right(int rank, const std::byte* result) override {
    if (!takes(rank)) return true;
    const auto place = static_cast<std::size_t>(rank) * block_;
    switch (collective_) {
      case Collective::kReduce:
        return values_->is_combined(0, whole_, result);
      case Collective::kReduceScatter:
        return values_->is_combined(place, block_, result);
      case Collective::kExclusiveScan:
        return values_->is_scanned(rank, 0, whole_, result);
      case Collective::kAllGather:
      case Collective::kGather:
        return are_blocks(0, result);
      case Collective::kScatter:
        return values_->is_from(kRoot, place, block_, result);
      case Collective::kBroadcast:
        return values_->is_from(kRoot, 0, whole_, result);
      case Collective::kAllToAll:
        return are_blocks(place, result);
      case Collective::kPermute:
        break;
    }
    return values_->is_from((rank + num_ranks_ - 1) % num_ranks_, 0, whole_, result);
  }

 private:
  bool is_reduction() const { return collective_ <= Collective::kExclusiveScan; }
  bool is_gather() const { return collective_ == Collective::kAllGather || collective_ == Collective::kGather; }
  bool may_be_in_place() const { return is_reduction() || is_gather() || collective_ == Collective::kBroadcast; }

  bool gives(int rank) const {
    return rank == kRoot || (collective_ != Collective::kScatter && collective_ != Collective::kBroadcast);
  }
  bool takes(int rank) const {
    return rank == kRoot || (collective_ != Collective::kReduce && collective_ != Collective::kGather);
  }

  std::size_t input_count() const { return is_gather() ? block_ : whole_; }
  std::size_t output_count() const {
    return collective_ == Collective::kReduceScatter || collective_ == Collective::kScatter ? block_ : whole_;
  }
  std::size_t output_bytes() const { return output_count() * core::size_of(result_); }
  std::size_t offset_of(int rank) const {
    return static_cast<std::size_t>(rank) * block_ * core::size_of(settings_.dtype);
  }

  std::byte* input_of(int rank) const {
    return inputs_.of(rank) + (variant_ == Variant::kInPlace && is_gather() ? offset_of(rank) : 0);
  }

  Buffer buffer_of(int rank) {
    Buffer part;
    part.dtype = settings_.dtype;
    part.output = output_of(rank);
    part.output_length = static_cast<std::int64_t>(output_count());
    if (gives(rank)) {
      part.input = input_of(rank);
      part.count = input_count();
      part.shape = input_shape_;
    } else if (part.output != nullptr) {  // says shape and type of its place
      part.input = collective_ == Collective::kBroadcast ? part.output : nullptr;
      part.count = output_count();
      part.shape = output_shape_;
    }
    return part;
  }

  // A block of every rank, from element `first` of what it gave.
  bool are_blocks(std::size_t first, const std::byte* result) const {
    for (int other = 0; other < num_ranks_; ++other) {
      if (!values_->is_from(other, first, block_, result + offset_of(other))) return false;
    }
    return true;
  }

  const Settings& settings_;
  const Buffers& inputs_;
  const Buffers& outputs_;
  Collective collective_;
  Variant variant_;
  int num_ranks_;
  std::size_t whole_;
  std::size_t block_;
  DType result_;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> pairs_;
  std::unique_ptr<const Values> values_;
};

std::string row(const Settings& settings, const Buffers& inputs, const Buffers& outputs, const std::string& what) {
  const std::size_t colon = what.find(':');
  if (colon == std::string::npos) throw std::invalid_argument("'" + what + "' is not collective:variant");
  const std::string collective = what.substr(0, colon);
  const std::string variant = what.substr(colon + 1);
  Call subject(settings, inputs, outputs, named(kCollectives, collective), variant_named(variant));
  const Timing timing = RankTimer(subject, settings.schedule).measure();
  return "{\"collective\": " + quoted(collective) + ", \"variant\": " + quoted(variant) + ", " + timing.as_json() + '}';
}

void run(const Arguments& arguments) {
  const DType dtype = dtype_named(arguments.text("dtype"));
  const Settings settings{{static_cast<int>(arguments.number("ranks")), arguments.number("milliseconds") / 1e3,
                           static_cast<std::size_t>(arguments.number("tail-calls"))},
                          static_cast<std::size_t>(arguments.number("bytes")),
                          dtype,
                          op_named(arguments.text("op"))};
  const std::size_t unit = core::size_of(dtype) * static_cast<std::size_t>(settings.schedule.num_ranks);
  if (settings.bytes == 0 || settings.bytes % unit != 0) {
    throw std::invalid_argument("--bytes must be a positive multiple of an element for each rank");
  }
  // Means of integers are wider than what they are of.
  const std::size_t result_size = core::size_of(core::result_dtype(settings.op, dtype));
  const Buffers inputs(settings.schedule.num_ranks, settings.bytes);
  const Buffers outputs(settings.schedule.num_ranks, settings.bytes / core::size_of(dtype) * result_size);
  std::string separator = "[";
  for (const std::string& what : arguments.words("what")) {
    std::cout << separator << row(settings, inputs, outputs, what);
    separator = ",\n ";
  }
  std::cout << "]\n";
}

}  // namespace
}  // namespace ringlet::bench

int main(int argc, char** argv) {
  return ringlet::bench::run_main(argc, argv,
                                  {{"ranks", "2"},
                                   {"bytes", "1048576"},
                                   {"dtype", "float32"},
                                   {"op", "SUM"},
                                   {"what", "reduce_scatter:out,all_gather:out,broadcast:out,all_to_all:out"},
                                   {"milliseconds", "20"},
                                   {"tail-calls", "0"}},
                                  ringlet::bench::run);
}
