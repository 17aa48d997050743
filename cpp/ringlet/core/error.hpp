// Errors of calls. The bindings map each class to a Python class.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace ringlet::core {

// The ranks did not make the same call; raised on every rank.
class MismatchError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another rank failed, so this call will never complete.
class AbortedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The process of another rank ended while the rank was a member.
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
  std::string reason;  // such as "was killed by SIGKILL (signal 9)"
};

// The system has no shared memory left or refuses to allocate it.
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

// A call on an object that was closed.
class ClosedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A tensor that cannot be divided as requested.
class PartitionError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace ringlet::core
