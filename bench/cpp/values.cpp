#include "values.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "elements.hpp"

namespace ringlet::bench {
namespace {

using core::DType;
using core::Op;

constexpr std::size_t kPeriod = 32749;  // a prime
constexpr std::size_t kBlock = 8192;    // elements that are compared at a time

// --- draws -----------------------------------------------------------------------------------------------------------

class Draw {
 public:
  Draw(DType dtype, Op op, bool is_exact) : dtype_(dtype), op_(op), is_exact_(is_exact) {}

  template <class T>
  T next() {
    if constexpr (kIsComplex<T>) {
      using Real = typename T::value_type;
      if (op_ == Op::kProd) {
        // Compilers may fuse products of complex numbers, and the sign of a zero depends on the order. Powers of 1+2i
        // are exact and have no zero part.
        const auto factor = static_cast<Real>(with_sign(static_cast<double>(1 + bits() % 2)));
        return T(factor, 2 * factor);
      }
      const auto real = static_cast<Real>(number());
      return T(real, static_cast<Real>(number()));
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(dtype_ == DType::kBool ? bits() & 1U : bits());
    } else {
      return narrowed<T>(static_cast<Partial<T>>(number()));
    }
  }

 private:
  std::uint64_t bits() {
    // A linear congruential generator with Knuth's MMIX constants; its high bits are good enough for test data.
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 24U;
  }

  double with_sign(double magnitude) { return bits() % 2 == 0 ? magnitude : -magnitude; }

  // Not zero, and so small that neither 16 ranks' sum nor their product leaves the range of the narrowest floats.
  double number() {
    const bool is_eight_bit = core::size_of(dtype_) == 1;
    const bool is_product = op_ == Op::kProd;
    if (is_exact_) {
      if (is_product) return with_sign(bits() % 2 == 0 ? 1.0 : 0.5);
      const auto whole = static_cast<double>(1 + bits() % (is_eight_bit ? 7 : 1000));
      return with_sign(is_eight_bit ? whole / 8.0 : whole);
    }
    const double part = 0.5 + static_cast<double>(bits() % (1U << 23U)) / static_cast<double>(1U << 24U);
    if (is_product) return with_sign(part);
    return with_sign(
        std::ldexp(part, is_eight_bit ? -static_cast<int>(bits() % 2) : static_cast<int>(bits() % 13) - 6));
  }

  DType dtype_;
  Op op_;
  bool is_exact_;
  std::uint64_t state_ = 20240229;
};

// --- combinations ----------------------------------------------------------------------------------------------------

template <class T, class Operation>
void merge_with(std::span<T> into, std::span<const T> from, Operation&& operation) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = operation(into[i], from[i]);
}

// Sums and products of integers wrap; unsigned arithmetic says so.
template <class T>
void merge_integers(Op op, std::span<T> into, std::span<const T> from) {
  using std::uint64_t;
  const auto merge = [&](auto&& operation) {
    merge_with<T>(into, from, [&](T a, T b) {
      return static_cast<T>(operation(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    });
  };
  switch (op) {
    case Op::kProd:
      return merge([](uint64_t a, uint64_t b) { return a * b; });
    case Op::kAnd:
      return merge([](uint64_t a, uint64_t b) { return a & b; });
    case Op::kOr:
      return merge([](uint64_t a, uint64_t b) { return a | b; });
    case Op::kXor:
      return merge([](uint64_t a, uint64_t b) { return a ^ b; });
    case Op::kMin:
      return merge_with<T>(into, from, [](T a, T b) { return std::min(a, b); });
    case Op::kMax:
      return merge_with<T>(into, from, [](T a, T b) { return std::max(a, b); });
    default:
      return merge([](uint64_t a, uint64_t b) { return a + b; });
  }
}

// into = into + from, for any operation.
template <class T>
void merge(Op op, std::span<T> into, std::span<const T> from) {
  if constexpr (std::is_integral_v<T>) {
    return merge_integers(op, into, from);
  } else {
    if constexpr (!kIsComplex<T>) {  // there is no NaN, and -0 never meets +0
      if (op == Op::kMin) return merge_with<T>(into, from, [](T a, T b) { return std::min(a, b); });
      if (op == Op::kMax) return merge_with<T>(into, from, [](T a, T b) { return std::max(a, b); });
    }
    if (op == Op::kProd) return merge_with<T>(into, from, [](T a, T b) { return a * b; });
    return merge_with<T>(into, from, [](T a, T b) { return a + b; });
  }
}

// What changes nothing.
template <class T>
T identity(Op op, DType dtype) {
  if (op == Op::kMin || op == Op::kMax) {
    const bool is_min = op == Op::kMin;
    if constexpr (kIsNarrow<T>) {
      return is_min ? T::largest() : T::smallest();
    } else if constexpr (std::is_integral_v<T>) {
      if (dtype == DType::kBool) return is_min ? 1 : 0;
      return is_min ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    } else if constexpr (!kIsComplex<T>) {
      return is_min ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
    }
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Op::kAnd) return dtype == DType::kBool ? static_cast<T>(1) : static_cast<T>(~T{0});
  }
  return op == Op::kProd ? narrowed<T>(Partial<T>(1)) : T{};
}

// --- values ----------------------------------------------------------------------------------------------------------

template <class T>
class TypedValues final : public Values {
 public:
  TypedValues(DType dtype, Op op, int num_ranks, bool is_exact) : dtype_(dtype), op_(op) {
    Draw draw(dtype, op, is_exact);
    for (int rank = 0; rank < num_ranks; ++rank) {
      auto& pattern = patterns_.emplace_back(kPeriod);
      for (T& value : pattern) value = draw.next<T>();
      auto& wide = wide_.emplace_back(kPeriod);
      std::transform(pattern.begin(), pattern.end(), wide.begin(), widened<T>);
    }
  }

  void fill(int rank, std::size_t count, void* into) const override {
    repeat(patterns_[static_cast<std::size_t>(rank)], 0, std::span(static_cast<T*>(into), count));
  }

  bool is_from(int rank, std::size_t first, std::size_t count, const void* given) const override {
    return matches<T>(first, count, given, [&](std::size_t begin, std::span<T> expected) {
      repeat(patterns_[static_cast<std::size_t>(rank)], begin, expected);
    });
  }

  bool is_combined(std::size_t first, std::size_t count, const void* given) const override {
    if constexpr (std::is_integral_v<T>) {
      const DType result = core::result_dtype(op_, dtype_);
      if (result == DType::kFloat32) return is_mean_of_integers<float>(first, count, given);
      if (result == DType::kFloat64) return is_mean_of_integers<double>(first, count, given);
    }
    return matches<T>(first, count, given, [&](std::size_t begin, std::span<T> expected) {
      const std::vector<Partial<T>> all = tree(begin, expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = finished(all[i]);
    });
  }

  bool is_scanned(int rank, std::size_t first, std::size_t count, const void* given) const override {
    return matches<T>(first, count, given, [&](std::size_t begin, std::span<T> expected) {
      if (rank == 0) return std::fill(expected.begin(), expected.end(), identity<T>(op_, dtype_));
      std::vector<Partial<T>> sum = wide(0, begin, expected.size());
      for (std::size_t other = 1; other < static_cast<std::size_t>(rank); ++other) {
        merge<Partial<T>>(op_, sum, wide(other, begin, expected.size()));
      }
      std::transform(sum.begin(), sum.end(), expected.begin(), narrowed<T>);
    });
  }

 private:
  // Elements from `begin` on of a pattern without end.
  template <class E>
  static void repeat(const std::vector<E>& pattern, std::size_t begin, std::span<E> into) {
    std::size_t place = begin % kPeriod;
    for (std::size_t done = 0; done < into.size(); place = 0) {
      const std::size_t size = std::min(kPeriod - place, into.size() - done);
      std::copy_n(pattern.begin() + static_cast<std::ptrdiff_t>(place), size,
                  into.begin() + static_cast<std::ptrdiff_t>(done));
      done += size;
    }
  }

  std::vector<Partial<T>> wide(std::size_t rank, std::size_t begin, std::size_t count) const {
    std::vector<Partial<T>> values(count);
    repeat<Partial<T>>(wide_[rank], begin, values);
    return values;
  }

  // Calls `expect(begin, expected)` for block after block, and compares.
  template <class R, class Expect>
  static bool matches(std::size_t first, std::size_t count, const void* given, Expect&& expect) {
    std::vector<R> expected(kBlock);
    for (std::size_t done = 0; done < count; done += kBlock) {
      const auto block = std::span(expected).first(std::min(kBlock, count - done));
      expect(first + done, block);
      if (std::memcmp(block.data(), static_cast<const R*>(given) + done, block.size_bytes()) != 0) return false;
    }
    return true;
  }

  template <class R>
  bool is_mean_of_integers(std::size_t first, std::size_t count, const void* given) const {
    return matches<R>(first, count, given, [&](std::size_t begin, std::span<R> expected) {
      const std::vector<Partial<T>> sums = tree(begin, expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if constexpr (std::is_integral_v<T>) expected[i] = static_cast<R>(sums[i]) / static_cast<R>(patterns_.size());
      }
    });
  }

  std::vector<Partial<T>> tree(std::size_t begin, std::size_t count) const {
    std::vector<std::vector<Partial<T>>> level;
    for (std::size_t rank = 0; rank < patterns_.size(); ++rank) level.push_back(wide(rank, begin, count));
    while (level.size() > 1) {
      std::vector<std::vector<Partial<T>>> above;
      for (std::size_t left = 0; left < level.size(); left += 2) {
        if (left + 1 < level.size()) merge<Partial<T>>(op_, level[left], level[left + 1]);
        above.push_back(std::move(level[left]));
      }
      level = std::move(above);
    }
    return std::move(level.front());
  }

  T finished(Partial<T> combined) const {
    if constexpr (!std::is_integral_v<T>) {
      using Real = std::conditional_t<std::is_same_v<Partial<T>, double> || std::is_same_v<T, std::complex<double>>,
                                      double, float>;
      if (op_ == Op::kMean) combined /= static_cast<Real>(patterns_.size());
    }
    return narrowed<T>(combined);
  }

  DType dtype_;
  Op op_;
  std::vector<std::vector<T>> patterns_;
  std::vector<std::vector<Partial<T>>> wide_;
};

}  // namespace

std::unique_ptr<const Values> make_values(DType dtype, Op op, int num_ranks, bool is_exact) {
  return visit_element(dtype, [&]<class T>() -> std::unique_ptr<const Values> {
    return std::make_unique<TypedValues<T>>(dtype, op, num_ranks, is_exact);
  });
}

}  // namespace ringlet::bench
