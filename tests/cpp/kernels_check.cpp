// Reductions of every operation on every dtype, with all numbers of inputs and outputs, odd counts, in place or not,
// wherever the buffers begin and end: all CPU targets give what a slow reference gives, and write nowhere else.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "reference.hpp"
#include "values.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace {

using namespace ringlet;
using core::DType;
using core::Op;
using kernels::Kernels;
using kernels::Store;
using stress::check;

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 31, 63, 64, 65, 511, 512, 513, 4095, 4097};
constexpr std::size_t kMostElements = 4097;
constexpr std::size_t kMostInputs = 17;
constexpr std::size_t kMostOutputs = kMostInputs + 2;
constexpr std::size_t kMostBytes = kMostElements * 16;

// Where a buffer begins: on a cache line, one element behind it, or so that it ends where memory ends.
enum class Place { kAligned, kShifted, kAtEnd };

// Sanitizers make algorithms of the standard library slow.
bool are_same(const void* one, const void* other, std::size_t bytes) {
  return bytes == 0 || std::memcmp(one, other, bytes) == 0;
}

// Memory for one buffer, between bytes that must not change and, behind it, a page that nobody can touch.
class Arena {
 public:
  Arena() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = (kMostBytes + 3 * kGuard + page - 1) / page * page;
    void* const mapped = mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(mapped != MAP_FAILED, "there is memory");
    memory_ = static_cast<std::byte*>(mapped);
    check(mprotect(memory_ + size_, page, PROT_NONE) == 0, "a page can be closed");
    std::memset(memory_, static_cast<int>(kUntouched), size_);
  }

  std::byte* place(Place place, std::size_t bytes, std::size_t element) {
    const std::size_t begin =
        place == Place::kAtEnd ? size_ - bytes : kGuard + (place == Place::kShifted ? element : 0);
    begin_ = memory_ + begin;
    end_ = begin_ + bytes;
    std::memset(begin_ - kGuard, static_cast<int>(kUntouched), kGuard);
    std::memset(end_, static_cast<int>(kUntouched), std::min(kGuard, static_cast<std::size_t>(memory_ + size_ - end_)));
    return begin_;
  }
  std::byte* data() const { return begin_; }

  bool is_untouched_around() const {
    static const std::vector<std::byte> kExpected(kGuard, kUntouched);
    const std::size_t behind = std::min(kGuard, static_cast<std::size_t>(memory_ + size_ - end_));
    return are_same(begin_ - kGuard, kExpected.data(), kGuard) && are_same(end_, kExpected.data(), behind);
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kUntouched{0xA5};
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

struct Case {
  Op op;
  DType dtype;
  std::size_t num_inputs;
  std::size_t count;
  std::size_t num_outputs = 1;
  bool in_place = false;
  Store store = Store::kPlain;
  Place place = Place::kAligned;

  DType result() const { return core::result_dtype(op, dtype); }
  std::string text() const {
    return std::string(core::name_of(op)) + " of " + std::to_string(num_inputs) + " inputs of " +
           std::to_string(count) + " " + std::string(core::name_of(dtype)) + " to " + std::to_string(num_outputs) +
           (in_place ? " outputs in place" : " outputs") + (store == Store::kStream ? ", past the caches" : "") +
           ", placed by rule " + std::to_string(static_cast<int>(place));
  }
};

constexpr std::size_t kNumVariants = 3 * 2 * 2 * 3;

// One of the ways to call the same reduction.
Case vary(Case base, std::size_t variant) {
  const std::size_t n = base.num_inputs;
  const std::size_t others[] = {n + 2, n > 2 ? n - 1 : n + 1};
  const std::size_t numbers[] = {1, n, others[variant / 3 % 2]};
  base.num_outputs = numbers[variant % 3];
  base.in_place = variant / 3 % 2 == 1 && core::size_of(base.result()) == core::size_of(base.dtype);
  base.store = variant / 6 % 2 == 1 ? Store::kStream : Store::kPlain;
  base.place = static_cast<Place>(variant / 12);
  return base;
}

class Checker {
 public:
  explicit Checker(DType dtype) : dtype_(dtype) {
    stress::Random random(core::index_of(dtype));
    for (stress::Array& input : given_) input = stress::draw_elements(dtype, kMostElements, random);
  }

  // Cases of one operation on one number of inputs.
  void run(const std::vector<Case>& cases) {
    if (cases.empty()) return;
    std::size_t most_elements = 0;
    for (const Case& given : cases) most_elements = std::max(most_elements, given.count);
    expect(cases.front(), most_elements);
    for (const Case& given : cases) run(given);
  }

 private:
  // What the reference makes of so many elements. The result of fewer is the beginning of it.
  void expect(const Case& given, std::size_t count) {
    const std::size_t size = core::size_of(given.result());
    expected_.resize(count * size);
    std::vector<const std::byte*> elements(given.num_inputs);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < elements.size(); ++k) elements[k] = given_[k].get() + i * core::size_of(dtype_);
      reference::reduce_in_tree_order(given.op, dtype_, elements, &expected_[i * size]);
    }
  }

  void run(const Case& given) {
    place(given);
    std::vector<std::byte> last;  // what the kernels before gave
    for (const Kernels* const kernels : kernels::runnable()) {
      fill_inputs(given);
      kernels->reduce(given.op, dtype_, inputs_, given.count, outputs_, given.store);
      check_results(given, *kernels, last);
    }
    check_surroundings(given);
  }

  std::size_t input_bytes(const Case& given) const { return given.count * core::size_of(dtype_); }
  std::size_t result_bytes(const Case& given) const { return given.count * core::size_of(given.result()); }

  void place(const Case& given) {
    inputs_.clear();
    outputs_.clear();
    for (std::size_t k = 0; k < given.num_inputs; ++k) {
      inputs_.push_back(input_arenas_[k].place(given.place, input_bytes(given), core::size_of(dtype_)));
    }
    for (std::size_t k = 0; k < given.num_outputs; ++k) {
      const bool is_input = given.in_place && k < given.num_inputs;
      outputs_.push_back(
          is_input ? input_arenas_[(k + 1) % given.num_inputs].data()
                   : output_arenas_[k].place(given.place, result_bytes(given), core::size_of(given.result())));
    }
  }

  void fill_inputs(const Case& given) {
    for (std::size_t k = 0; k < given.num_inputs; ++k) {
      std::memcpy(input_arenas_[k].data(), given_[k].get(), input_bytes(given));
    }
  }

  void check_results(const Case& given, const Kernels& kernels, std::vector<std::byte>& last) {
    const auto* const first = static_cast<const std::byte*>(outputs_.front());
    const std::size_t bytes = result_bytes(given);
    for (const void* const output : outputs_) {
      check(are_same(first, output, bytes),
            given.text() + ": all outputs are the same on " + std::string(kernels.name));
    }
    if (last.size() == bytes && are_same(last.data(), first, bytes)) return;
    const std::size_t size = core::size_of(given.result());
    for (std::size_t i = 0; i < given.count; ++i) {
      if (reference::are_equal(given.result(), first + i * size, &expected_[i * size])) continue;
      check(false,
            given.text() + ": element " + std::to_string(i) + " is the reference's on " + std::string(kernels.name));
    }
    last.assign(first, first + bytes);
  }

  void check_surroundings(const Case& given) {
    for (std::size_t k = 0; k < given.num_inputs; ++k) {
      check(input_arenas_[k].is_untouched_around(), given.text() + ": nothing is written beside an input");
      const std::byte* const input = input_arenas_[k].data();
      const bool is_output = std::find(outputs_.begin(), outputs_.end(), input) != outputs_.end();
      check(is_output || are_same(input, given_[k].get(), input_bytes(given)),
            given.text() + ": nothing is written to an input");
    }
    for (std::size_t k = given.in_place ? given.num_inputs : 0; k < given.num_outputs; ++k) {
      check(output_arenas_[k].is_untouched_around(), given.text() + ": nothing is written beside an output");
    }
  }

  static inline std::array<Arena, kMostInputs> input_arenas_;
  static inline std::array<Arena, kMostOutputs> output_arenas_;
  DType dtype_;
  std::array<stress::Array, kMostInputs> given_;
  std::vector<std::byte> expected_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

// Which of the possible cases to run, so that there are about as many as the command line asks for.
class Choice {
 public:
  explicit Choice(std::size_t calls)
      : variants_(std::clamp<std::size_t>(calls / kReductions, 1, kNumVariants)),
        stride_(std::max<std::size_t>(1, kReductions / std::max<std::size_t>(1, calls))) {}

  std::vector<Case> take(Op op, DType dtype, std::size_t num_inputs) {
    std::vector<Case> cases;
    for (const std::size_t count : kCounts) {
      if (num_reductions_++ % stride_ != 0) continue;
      const Case base{.op = op, .dtype = dtype, .num_inputs = num_inputs, .count = count};
      // 5 and the number of variants have no divisor in common: where not all are taken, others are each time.
      for (std::size_t turn = 0; turn < variants_; ++turn) cases.push_back(vary(base, num_cases_++ * 5 % kNumVariants));
    }
    return cases;
  }

 private:
  static constexpr std::size_t kNumPairs = 130;  // of an operation and a dtype
  static constexpr std::size_t kReductions = kNumPairs * kMostInputs * std::size(kCounts);
  std::size_t variants_;
  std::size_t stride_;
  std::size_t num_reductions_ = 0;
  std::size_t num_cases_ = 0;
};

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kShare = 32;  // this is one thread, which a sanitizer of threads makes slow
#else
constexpr std::size_t kShare = 1;
#endif

}  // namespace

int main(int argc, char** argv) {
  Choice choice(stress::calls_of(argc, argv, 100'000) / kShare);
  for (std::size_t dtype_index = 0; dtype_index < core::kNumDTypes; ++dtype_index) {
    const auto dtype = static_cast<DType>(dtype_index);
    Checker checker(dtype);
    for (std::size_t op_index = 0; op_index < core::kNumOps; ++op_index) {
      const auto op = static_cast<Op>(op_index);
      for (std::size_t num_inputs = 1; num_inputs <= kMostInputs; ++num_inputs) {
        if (core::is_supported(op, dtype)) checker.run(choice.take(op, dtype, num_inputs));
      }
    }
  }
}
