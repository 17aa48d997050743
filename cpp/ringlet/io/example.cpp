#include "ringlet/io/example.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "ringlet/io/wire.hpp"

namespace ringlet::io {

namespace {

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void read_text(Message& list, Field field, FeatureValues& values) {
  if (field.type != WireType::kDelimited) list.fail("a value of a list of bytes has another wire type");
  values.texts.push_back(list.delimited());
}

void read_floats(Message& list, Field field, FeatureValues& values) {
  if (field.type == WireType::kFixed32) {
    values.floats.push_back(std::bit_cast<float>(list.fixed32()));
    return;
  }
  if (field.type != WireType::kDelimited) list.fail("a value of a list of floats has another wire type");
  const Bytes packed = list.delimited();
  if (packed.size() % sizeof(float) != 0) list.fail("the bytes of a list of floats are not a multiple of 4");
  const std::size_t count = values.floats.size();
  values.floats.resize(count + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(values.floats.data() + count, packed.data(), packed.size());
}

void read_ints(Message& list, Field field, FeatureValues& values) {
  if (field.type == WireType::kVarint) {
    values.ints.push_back(static_cast<std::int64_t>(list.varint()));
    return;
  }
  if (field.type != WireType::kDelimited) list.fail("a value of a list of integers has another wire type");
  for (Message packed = list.message(); !packed.is_at_end();) {
    values.ints.push_back(static_cast<std::int64_t>(packed.varint()));
  }
}

void read_list(Message list, FeatureKind kind, FeatureValues& values) {
  while (!list.is_at_end()) {
    const Field field = list.field();
    if (field.number != 1) {
      list.skip(field.type);
    } else if (kind == FeatureKind::kBytes) {
      read_text(list, field, values);
    } else if (kind == FeatureKind::kFloat) {
      read_floats(list, field, values);
    } else {
      read_ints(list, field, values);
    }
  }
}

// Appends the lists of a feature, and returns their kind.
FeatureKind read_feature(Message feature, FeatureValues& values) {
  const std::size_t texts = values.texts.size();
  const std::size_t floats = values.floats.size();
  const std::size_t ints = values.ints.size();
  auto kind = FeatureKind::kNone;
  while (!feature.is_at_end()) {
    const Field field = feature.field();
    if (field.number > 3) {
      feature.skip(field.type);
      continue;
    }
    if (field.type != WireType::kDelimited) feature.fail("the list of a feature has another wire type");
    const auto found = static_cast<FeatureKind>(field.number);
    if (found != kind) {  // of two kinds, the last one is used
      values.texts.resize(texts);
      values.floats.resize(floats);
      values.ints.resize(ints);
    }
    kind = found;
    read_list(feature.message(), kind, values);
  }
  return kind;
}

struct Entry {
  std::string_view name;
  Bytes feature;
};

Entry read_entry(Message entry) {
  Entry read{};
  bool has_feature = false;
  while (!entry.is_at_end()) {
    const Field field = entry.field();
    if (field.number > 2) {
      entry.skip(field.type);
      continue;
    }
    if (field.type != WireType::kDelimited) entry.fail("a name or a feature has another wire type");
    const Bytes bytes = entry.delimited();
    if (field.number == 1) {
      read.name = text_of(bytes);
      continue;
    }
    if (has_feature) entry.fail("a name has two features in one entry");
    read.feature = bytes;
    has_feature = true;
  }
  return read;
}

// Calls `visit(entry)` for every feature, in order.
template <class Visit>
void walk(Bytes example, Visit&& visit) {
  for (Message outer(example); !outer.is_at_end();) {
    const Field field = outer.field();
    if (field.number != 1) {
      outer.skip(field.type);
      continue;
    }
    if (field.type != WireType::kDelimited) outer.fail("the features of an example have another wire type");
    for (Message features = outer.message(); !features.is_at_end();) {
      const Field inner = features.field();
      if (inner.number != 1) {
        features.skip(inner.type);
      } else if (inner.type != WireType::kDelimited) {
        features.fail("an entry of the features has another wire type");
      } else {
        visit(read_entry(features.message()));
      }
    }
  }
}

}  // namespace

std::size_t FeatureValues::count(FeatureKind kind) const {
  switch (kind) {
    case FeatureKind::kBytes:
      return texts.size();
    case FeatureKind::kFloat:
      return floats.size();
    case FeatureKind::kInt64:
      return ints.size();
    case FeatureKind::kNone:
      break;
  }
  return 0;
}

std::vector<NamedFeature> read_example(Bytes example) {
  std::vector<Entry> entries;
  std::unordered_map<std::string_view, std::size_t> last;
  walk(example, [&](const Entry& entry) {
    last[entry.name] = entries.size();
    entries.push_back(entry);
  });
  std::vector<NamedFeature> features;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (last[entries[i].name] != i) continue;
    NamedFeature feature{entries[i].name, FeatureKind::kNone, {}};
    feature.kind = read_feature(Message(entries[i].feature, example.data()), feature.values);
    features.push_back(std::move(feature));
  }
  return features;
}

void append_example(Bytes example, std::span<FeatureColumn> columns) {
  std::vector<std::optional<Bytes>> found(columns.size());
  walk(example, [&](const Entry& entry) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == entry.name) found[i] = entry.feature;
    }
  });
  for (std::size_t i = 0; i < columns.size(); ++i) {
    FeatureColumn& column = columns[i];
    const std::size_t before = column.values.count(column.kind);
    const FeatureKind kind =
        found[i].has_value() ? read_feature(Message(*found[i], example.data()), column.values) : FeatureKind::kNone;
    const auto count = static_cast<std::int64_t>(column.values.count(column.kind) - before);
    column.lengths.push_back(kind == column.kind ? count : FeatureColumn::kMissing - static_cast<std::int64_t>(kind));
  }
}

void ExampleWriter::begin_feature(std::string_view name, std::size_t feature_bytes) {
  append_delimited(features_, 1, delimited_bytes(name.size()) + delimited_bytes(feature_bytes));
  append_delimited(features_, 1, name.size());
  features_.append(name);
  append_delimited(features_, 2, feature_bytes);
}

void ExampleWriter::begin_list(std::string_view name, FeatureKind kind, std::size_t list_bytes) {
  begin_feature(name, delimited_bytes(list_bytes));
  append_delimited(features_, static_cast<std::uint32_t>(kind), list_bytes);
}

void ExampleWriter::add(std::string_view name, std::span<const Bytes> texts) {
  std::size_t list_bytes = 0;
  for (const Bytes text : texts) list_bytes += delimited_bytes(text.size());
  begin_list(name, FeatureKind::kBytes, list_bytes);
  for (const Bytes text : texts) {
    append_delimited(features_, 1, text.size());
    features_.append(text_of(text));
  }
}

void ExampleWriter::add(std::string_view name, std::span<const float> floats) {
  begin_list(name, FeatureKind::kFloat, floats.empty() ? 0 : delimited_bytes(floats.size_bytes()));
  if (floats.empty()) return;
  append_delimited(features_, 1, floats.size_bytes());
  features_.append(text_of(std::as_bytes(floats)));
}

void ExampleWriter::add(std::string_view name, std::span<const std::int64_t> ints) {
  std::size_t packed_bytes = 0;
  for (const std::int64_t value : ints) packed_bytes += varint_bytes(static_cast<std::uint64_t>(value));
  begin_list(name, FeatureKind::kInt64, ints.empty() ? 0 : delimited_bytes(packed_bytes));
  if (ints.empty()) return;
  append_delimited(features_, 1, packed_bytes);
  for (const std::int64_t value : ints) append_varint(features_, static_cast<std::uint64_t>(value));
}

void ExampleWriter::add(std::string_view name) { begin_feature(name, 0); }

std::string ExampleWriter::finish() const {
  std::string message;
  append_delimited(message, 1, features_.size());
  return message.append(features_);
}

}  // namespace ringlet::io
