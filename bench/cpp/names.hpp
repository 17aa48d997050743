// What the words of a command line mean.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::bench {

template <class Value>
Value named(const std::map<std::string, Value>& table, const std::string& name) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  std::string text = "unknown '" + name + "'; expected one of:";
  for (const auto& entry : table) text += " " + entry.first;
  throw std::invalid_argument(text);
}

// Values of an enumeration 0 .. count - 1, by the names that the core has for them.
template <class Value>
std::map<std::string, Value> names_of_all(std::size_t count) {
  std::map<std::string, Value> table;
  for (std::size_t i = 0; i < count; ++i) table.emplace(name_of(static_cast<Value>(i)), static_cast<Value>(i));
  return table;
}

inline core::DType dtype_named(const std::string& name) {
  return named(names_of_all<core::DType>(core::kNumDTypes), name);
}
inline core::Op op_named(const std::string& name) { return named(names_of_all<core::Op>(core::kNumOps), name); }

}  // namespace ringlet::bench
