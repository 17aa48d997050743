// tf.train.Example: named lists of bytes, float32 or int64 values, as a protocol buffer.
//
//     Example  { Features features = 1; }
//     Features { map<string, Feature> feature = 1; }
//     Feature  { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
//     ...List  { repeated value = 1; }    numbers packed into one field, or one field each
//
// Repeated fields are merged as in protocol buffers: of two features with one name, the last one is used; lists of one
// kind in one feature are concatenated; of two kinds, the last one is used. Unknown fields are skipped; known fields
// with another wire type are errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/io/crc32c.hpp"

namespace ringlet::io {

// The number of the kind's list in a Feature; kNone for a feature without a list.
enum class FeatureKind : std::uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// Values of one kind; the other lists are empty. Texts are views of the input.
struct FeatureValues {
  std::vector<Bytes> texts;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;

  std::size_t count(FeatureKind kind) const;
};

struct NamedFeature {
  std::string_view name;
  FeatureKind kind;
  FeatureValues values;
};

// All features of an example, in the order of their last mention. Throws core::ArgumentError.
std::vector<NamedFeature> read_example(Bytes example);

// One feature of many examples: their concatenated values.
struct FeatureColumn {
  static constexpr std::int64_t kMissing = -1;

  std::string name;
  FeatureKind kind;
  FeatureValues values = {};
  // The number of values of each example; kMissing if it has no such feature, and kMissing - k if the feature has
  // another kind k.
  std::vector<std::int64_t> lengths = {};
};

// Appends an example to all columns. Throws core::ArgumentError for an invalid example; the columns are then undefined.
void append_example(Bytes example, std::span<FeatureColumn> columns);

// Writes an example, feature by feature.
class ExampleWriter {
 public:
  void add(std::string_view name, std::span<const Bytes> texts);
  void add(std::string_view name, std::span<const float> floats);
  void add(std::string_view name, std::span<const std::int64_t> ints);
  // A feature without a list.
  void add(std::string_view name);
  // The serialized message of all added features.
  std::string finish() const;

 private:
  // Writes the head of an entry, which is followed by a feature of `feature_bytes` bytes.
  void begin_feature(std::string_view name, std::size_t feature_bytes);
  // Writes the head of an entry, which is followed by the `list_bytes` bytes of a list.
  void begin_list(std::string_view name, FeatureKind kind, std::size_t list_bytes);

  std::string features_;
};

}  // namespace ringlet::io
