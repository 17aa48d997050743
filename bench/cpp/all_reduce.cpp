// How long an all-reduce between threads takes without an interpreter.
//
//   all_reduce --ranks 4 --bytes 1048576 --dtype float32 --op SUM --algorithms auto,ring --variants in_place,shared
//
// Every algorithm and variant is verified before and after it is timed; a wrong answer ends the program with status 3
// and no time. One time is that of the slowest rank over K back-to-back calls between two barriers, divided by K.
// Rank i runs on the i-th usable core, counted round. Prints JSON.

#include <sys/resource.h>

#include <exception>
#include <iostream>
#include <memory>

#include "team.hpp"
#include "text.hpp"
#include "values.hpp"
#include "ringlet/collectives/group.hpp"

namespace ringlet::bench {
namespace {

using collectives::Algorithm;
using core::DType;
using core::Op;

class WrongAnswer : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Variant {
  kInPlace,  // the result replaces the input of every rank
  kOut,      // every rank has a buffer of its own for the result
  kShared,   // one read-only result for all ranks, from the pool
};

template <class Value>
Value named(const std::map<std::string, Value>& table, const std::string& name) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  std::string text = "unknown '" + name + "'; expected one of:";
  for (const auto& entry : table) text += " " + entry.first;
  throw std::invalid_argument(text);
}

const std::map<std::string, DType> kDTypes{
    {"float32", DType::kFloat32}, {"float64", DType::kFloat64}, {"int32", DType::kInt32}, {"int64", DType::kInt64}};
const std::map<std::string, Op> kOps{{"SUM", Op::kSum}, {"MEAN", Op::kMean}};
const std::map<std::string, Algorithm> kAlgorithms{{"auto", Algorithm::kAuto},
                                                   {"ring", Algorithm::kRing},
                                                   {"direct", Algorithm::kDirect},
                                                   {"small", Algorithm::kSmall}};
const std::map<std::string, Variant> kVariants{
    {"in_place", Variant::kInPlace}, {"out", Variant::kOut}, {"shared", Variant::kShared}};

struct Settings {
  int num_ranks;
  std::size_t bytes;
  DType dtype;
  Op op;
  double region_seconds;
  std::size_t tail_calls;
};

struct Timing {
  double seconds = 0.0;
  std::size_t calls = 0;
  double faults_per_call = 0.0;
  double slowest_call = 0.0;
};

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Buffers of all ranks, in one mapping. Each starts one page and three lines further than the size of those before it:
// equal offsets inside a page would measure collisions in the first-level cache.
class Buffers {
 public:
  Buffers(int num_ranks, std::size_t bytes)
      : stride_((bytes + kLine - 1) / kLine * kLine + kSkew), pages_(stride_ * static_cast<std::size_t>(num_ranks)) {}

  std::byte* of(int rank) const { return pages_.data() + stride_ * static_cast<std::size_t>(rank); }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kSkew = 4096 + 3 * kLine;
  std::size_t stride_;
  Pages pages_;
};

// One algorithm and variant: ranks, their buffers, and what they call.
template <class T, class R>
class Subject {
 public:
  Subject(const Settings& settings, const Buffers& inputs, const Buffers& outputs, Algorithm algorithm, Variant variant)
      : settings_(settings),
        inputs_(inputs),
        outputs_(variant == Variant::kInPlace ? inputs : outputs),
        algorithm_(algorithm),
        variant_(variant),
        count_(settings.bytes / sizeof(T)),
        shape_{static_cast<std::int64_t>(count_)},
        group_(settings.num_ranks),
        values_(settings.num_ranks, algorithm == Algorithm::kRing),
        line_(static_cast<std::size_t>(settings.num_ranks)),
        seconds_(static_cast<std::size_t>(settings.num_ranks)) {}

  Timing measure() {
    std::vector<int> cores;
    const std::vector<int> usable = usable_cores();
    for (int rank = 0; rank < settings_.num_ranks; ++rank) {
      cores.push_back(usable[static_cast<std::size_t>(rank) % usable.size()]);
    }
    on_cores(cores, [&](std::size_t rank) { run_or_exit(static_cast<int>(rank)); });
    if (is_wrong_.load()) throw WrongAnswer("the result differs from the reference");
    return timing_;
  }

 private:
  // Ranks that wait for one that failed would wait for ever, so a failure ends the program.
  void run_or_exit(int rank) {
    try {
      run(rank);
    } catch (const std::exception& error) {
      std::cerr << "all_reduce: rank " << rank << ": " << error.what() << std::endl;
      std::_Exit(2);
    }
  }

  void run(int rank) {
    collectives::Member member = group_.member(rank);
    verify(member);
    clear(rank);
    while (region(member) < settings_.region_seconds / 2) {
      line_.wait();
      if (rank == 0) calls_ *= 2;
      line_.wait();
    }
    line_.wait();
    const long faults = page_faults();
    const double seconds = region(member);
    if (rank == 0) {
      const auto calls = static_cast<double>(calls_);
      timing_ = {seconds / calls, calls_, static_cast<double>(page_faults() - faults) / calls, 0.0};
    }
    find_slowest(member);
    verify(member);
  }

  collectives::Results call(collectives::Member& member) {
    collectives::Part part;
    part.input = inputs_.of(member.rank());
    part.output = variant_ == Variant::kShared ? nullptr : outputs_.of(member.rank());
    part.count = count_;
    part.dtype = settings_.dtype;
    part.shape = shape_;
    return member.all_reduce({&part, 1}, settings_.op, algorithm_);
  }

  void verify(collectives::Member& member) {
    line_.wait();
    values_.fill(member.rank(), {reinterpret_cast<T*>(inputs_.of(member.rank())), count_});
    line_.wait();
    const collectives::Results results = call(member);
    const std::byte* data = variant_ == Variant::kShared ? results.front()->data() : outputs_.of(member.rank());
    if (!is_right(data, count_)) is_wrong_.store(true);
    if (variant_ != Variant::kShared) check_the_check(outputs_.of(member.rank()));
    line_.wait();
  }

  bool is_right(const std::byte* data, std::size_t count) const {
    return values_.is_result(std::span(reinterpret_cast<const R*>(data), count), settings_.op);
  }

  // A comparison that lets everything pass would make every time worthless: it must refuse one changed bit.
  void check_the_check(std::byte* data) const {
    data[0] ^= std::byte{1};
    if (is_right(data, 1)) throw std::logic_error("the comparison with the reference accepts a wrong answer");
    data[0] ^= std::byte{1};
  }

  // Repeated sums in place would grow without bound; zeros stay what they are and cost the same.
  void clear(int rank) {
    std::memset(inputs_.of(rank), 0, settings_.bytes);
    line_.wait();
  }

  // Seconds of calls_ calls, of the slowest rank. A rank may begin a call while another still holds the result of the
  // one before, so a steady state has two results; holding one while the next is made brings both about.
  double region(collectives::Member& member) {
    {
      const collectives::Results held = call(member);
      call(member);
    }
    line_.wait();
    const double start = seconds_now();
    for (std::size_t i = 0; i < calls_; ++i) call(member);
    seconds_[static_cast<std::size_t>(member.rank())] = seconds_now() - start;
    line_.wait();
    return *std::max_element(seconds_.begin(), seconds_.end());
  }

  void find_slowest(collectives::Member& member) {
    double& slowest = seconds_[static_cast<std::size_t>(member.rank())];
    line_.wait();
    slowest = 0.0;
    for (std::size_t i = 0; i < settings_.tail_calls; ++i) {
      const double start = seconds_now();
      call(member);
      slowest = std::max(slowest, seconds_now() - start);
    }
    line_.wait();
    if (member.rank() == 0) timing_.slowest_call = *std::max_element(seconds_.begin(), seconds_.end());
  }

  const Settings& settings_;
  const Buffers& inputs_;
  const Buffers& outputs_;
  Algorithm algorithm_;
  Variant variant_;
  std::size_t count_;
  std::vector<std::int64_t> shape_;
  collectives::Group group_;
  Values<T> values_;
  StartLine line_;
  std::vector<double> seconds_;
  std::size_t calls_ = 3;  // the fewest that a time is taken of
  Timing timing_;
  std::atomic<bool> is_wrong_{false};
};

Timing measure(const Settings& settings, const Buffers& inputs, const Buffers& outputs, Algorithm algorithm,
               Variant variant) {
  const DType result = core::result_dtype(settings.op, settings.dtype);
  if (variant == Variant::kInPlace && result != settings.dtype) {
    throw std::invalid_argument("the mean of integers is a float64 array and cannot replace its input");
  }
  return core::visit_dtype(settings.dtype, [&]<class T>() {
    return core::visit_dtype(
        result, [&]<class R>() { return Subject<T, R>(settings, inputs, outputs, algorithm, variant).measure(); });
  });
}

std::string row(const std::string& algorithm, const std::string& variant, const Timing& timing) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"algorithm\": " << quoted(algorithm) << ", \"variant\": " << quoted(variant)
      << ", \"seconds\": " << timing.seconds << ", \"calls\": " << timing.calls
      << ", \"faults_per_call\": " << timing.faults_per_call << ", \"slowest_call\": " << timing.slowest_call << '}';
  return out.str();
}

void run(const Arguments& arguments) {
  const DType dtype = named(kDTypes, arguments.text("dtype"));
  const Settings settings{static_cast<int>(arguments.number("ranks")),
                          static_cast<std::size_t>(arguments.number("bytes")),
                          dtype,
                          named(kOps, arguments.text("op")),
                          arguments.number("milliseconds") / 1e3,
                          static_cast<std::size_t>(arguments.number("tail-calls"))};
  if (settings.bytes == 0 || settings.bytes % core::size_of(dtype) != 0) {
    throw std::invalid_argument("--bytes must be a positive multiple of the element size");
  }
  const std::size_t result_bytes =
      settings.bytes / core::size_of(dtype) * core::size_of(core::result_dtype(settings.op, dtype));
  const Buffers inputs(settings.num_ranks, settings.bytes);
  const Buffers outputs(settings.num_ranks, result_bytes);
  std::cout << '[';
  bool is_first = true;
  for (const std::string& algorithm : arguments.words("algorithms")) {
    for (const std::string& variant : arguments.words("variants")) {
      const Timing timing =
          measure(settings, inputs, outputs, named(kAlgorithms, algorithm), named(kVariants, variant));
      std::cout << (is_first ? "" : ",\n ") << row(algorithm, variant, timing);
      is_first = false;
    }
  }
  std::cout << "]\n";
}

}  // namespace
}  // namespace ringlet::bench

int main(int argc, char** argv) {
  try {
    ringlet::bench::run(ringlet::bench::Arguments(argc, argv,
                                                  {{"ranks", "2"},
                                                   {"bytes", "1048576"},
                                                   {"dtype", "float32"},
                                                   {"op", "SUM"},
                                                   {"algorithms", "auto,direct,ring"},
                                                   {"variants", "in_place,out,shared"},
                                                   {"milliseconds", "20"},
                                                   {"tail-calls", "0"}}));
    return 0;
  } catch (const ringlet::bench::WrongAnswer& error) {
    std::cerr << "all_reduce: " << error.what() << '\n';
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "all_reduce: " << error.what() << '\n';
    return 2;
  }
}
