// How long an all-reduce between threads takes without an interpreter.
//
//   all_reduce --ranks 4 --bytes 1048576 --dtype float32 --op SUM --algorithms auto,ring --variants in_place,shared
//
// Every algorithm and variant is verified before and after it is timed; a wrong answer ends the program with status 3
// and no time. One time is that of the slowest rank over K back-to-back calls between two barriers, divided by K.
// Rank i runs on the i-th usable core, counted round. Prints JSON.

#include <cstring>
#include <iostream>
#include <memory>

#include "names.hpp"
#include "rank_timer.hpp"
#include "values.hpp"

namespace ringlet::bench {
namespace {

using collectives::Algorithm;
using core::DType;
using core::Op;

const std::map<std::string, Algorithm> kAlgorithms{{"auto", Algorithm::kAuto},
                                                   {"ring", Algorithm::kRing},
                                                   {"direct", Algorithm::kDirect},
                                                   {"small", Algorithm::kSmall}};

struct Settings {
  Schedule schedule;
  std::size_t bytes;
  DType dtype;
  Op op;
};

// One algorithm and variant: the ranks' buffers, and what they call.
class AllReduce final : public Subject {
 public:
  AllReduce(const Settings& settings, const Buffers& inputs, const Buffers& outputs, Algorithm algorithm,
            Variant variant)
      : settings_(settings),
        inputs_(inputs),
        outputs_(variant == Variant::kInPlace ? inputs : outputs),
        algorithm_(algorithm),
        variant_(variant),
        shape_{static_cast<std::int64_t>(settings.bytes / core::size_of(settings.dtype))},
        values_(make_values(settings.dtype, settings.op, settings.schedule.num_ranks, algorithm == Algorithm::kRing)) {}

  void fill(int rank) override {
    if (variant_ == Variant::kOut) std::memset(outputs_.of(rank), 0, result_bytes());
    values_->fill(rank, count(), inputs_.of(rank));
  }
  void clear(int rank) override { std::memset(inputs_.of(rank), 0, settings_.bytes); }

  collectives::Results call(collectives::Member& member) override {
    collectives::Buffer part;
    part.input = inputs_.of(member.rank());
    part.output = output_of(member.rank());
    part.count = count();
    part.dtype = settings_.dtype;
    part.shape = shape_;
    return member.all_reduce({&part, 1}, settings_.op, algorithm_);
  }

  std::byte* output_of(int rank) override { return variant_ == Variant::kShared ? nullptr : outputs_.of(rank); }
  bool is_right(int, const std::byte* result) override { return values_->is_combined(0, count(), result); }

 private:
  std::size_t count() const { return static_cast<std::size_t>(shape_.front()); }
  std::size_t result_bytes() const {
    return count() * core::size_of(core::result_dtype(settings_.op, settings_.dtype));
  }

  const Settings& settings_;
  const Buffers& inputs_;
  const Buffers& outputs_;
  Algorithm algorithm_;
  Variant variant_;
  std::vector<std::int64_t> shape_;
  std::unique_ptr<const Values> values_;
};

void run(const Arguments& arguments) {
  const DType dtype = dtype_named(arguments.text("dtype"));
  const Settings settings{{static_cast<int>(arguments.number("ranks")), arguments.number("milliseconds") / 1e3,
                           static_cast<std::size_t>(arguments.number("tail-calls"))},
                          static_cast<std::size_t>(arguments.number("bytes")),
                          dtype,
                          op_named(arguments.text("op"))};
  if (settings.bytes == 0 || settings.bytes % core::size_of(dtype) != 0) {
    throw std::invalid_argument("--bytes must be a positive multiple of the element size");
  }
  const DType result = core::result_dtype(settings.op, dtype);
  const Buffers inputs(settings.schedule.num_ranks, settings.bytes);
  const Buffers outputs(settings.schedule.num_ranks, settings.bytes / core::size_of(dtype) * core::size_of(result));
  std::string separator = "[";
  for (const std::string& algorithm : arguments.words("algorithms")) {
    for (const std::string& variant : arguments.words("variants")) {
      if (variant_named(variant) == Variant::kInPlace && result != dtype) {
        throw std::invalid_argument("the mean of integers has another type and cannot replace its input");
      }
      AllReduce subject(settings, inputs, outputs, named(kAlgorithms, algorithm), variant_named(variant));
      const Timing timing = RankTimer(subject, settings.schedule).measure();
      std::cout << separator << "{\"algorithm\": " << quoted(algorithm) << ", \"variant\": " << quoted(variant) << ", "
                << timing.as_json() << '}';
      separator = ",\n ";
    }
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
                                   {"algorithms", "auto,direct,ring"},
                                   {"variants", "in_place,out,shared"},
                                   {"milliseconds", "20"},
                                   {"tail-calls", "0"}},
                                  ringlet::bench::run);
}
