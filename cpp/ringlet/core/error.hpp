// What a call can fail with. The bindings give each class its Python counterpart.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace ringlet::core {

// The ranks did not make the same call; raised on every one of them.
class MismatchError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another rank failed, so this call will never complete.
class AbortedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The process of another rank ended while it was a member.
class WorkerLostError : public std::runtime_error {
 public:
  WorkerLostError(const std::string& message, int lost_rank, std::string lost_host, int lost_pid, std::string how)
      : std::runtime_error(message),
        rank(lost_rank),
        host(std::move(lost_host)),
        pid(lost_pid),
        reason(std::move(how)) {}

  int rank;
  std::string host;
  int pid;
  std::string reason;  // as "was killed by SIGKILL (signal 9)"
};

// The system has no shared memory left to give, or refuses to give any.
class SharedMemoryError : public std::runtime_error {
 public:
  SharedMemoryError(const std::string& message, int number, std::uint64_t wanted, std::uint64_t available,
                    std::string where)
      : std::runtime_error(message),
        error_number(number),
        wanted_bytes(wanted),
        free_bytes(available),
        path(std::move(where)) {}

  int error_number;  // errno of the call that failed
  std::uint64_t wanted_bytes;
  std::uint64_t free_bytes;
  std::string path;  // "memfd", or the name of a file
};

// A wait reached its deadline.
class DeadlineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An argument that the operation cannot accept.
class ArgumentError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Something that was closed is asked to go on.
class ClosedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A tensor that cannot be cut as asked.
class PartitionError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace ringlet::core
