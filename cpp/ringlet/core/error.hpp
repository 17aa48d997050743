// What a call can fail with. The bindings give each class its Python counterpart.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace ringlet::core {

// The ranks did not make the same call; raised on every one of them.
class MismatchError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another rank failed, so this call will never complete.
class AbortedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A wait reached its deadline.
class DeadlineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An argument that the operation cannot accept.
class ArgumentError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A tensor that cannot be cut as asked.
class PartitionError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace ringlet::core
