// Descriptions of arrays in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ringlet/core/dtype.hpp"

namespace ringlet::core {

// Text such as "float32[1000,64]".
inline std::string describe(DType dtype, std::span<const std::int64_t> shape) {
  std::string text(name_of(dtype));
  text += '[';
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (dim > 0) text += ',';
    text += std::to_string(shape[dim]);
  }
  return text + ']';
}

}  // namespace ringlet::core
