// Lets Ctrl-C end a wait that has released the interpreter.
#pragma once

#include <pybind11/pybind11.h>

#include "ringlet/sync/wait.hpp"

namespace ringlet::bindings {

class SignalPoll final : public sync::Poll {
 public:
  void operator()() override {
    const pybind11::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }
};

// `seconds` of infinity, or more than a clock can count, means for ever.
inline sync::Clock::duration timeout_of(double seconds) {
  const std::chrono::duration<double> wanted(seconds);
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
  return wanted < kLongest ? std::chrono::duration_cast<sync::Clock::duration>(wanted) : sync::kForever;
}

}  // namespace ringlet::bindings
