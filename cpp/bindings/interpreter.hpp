// Waiting without the interpreter in hand.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>

#include "ringlet/sync/wait.hpp"

namespace ringlet::bindings {

// Lets other Python threads run until the end of the scope. Up to Python 3.13, a thread that asks for the interpreter
// back while it is being torn down is ended by unwinding its stack, so the destructor must let that pass, and nothing
// may be thrown through it: use without_interpreter.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() noexcept(false) { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

template <class Work>
void without_interpreter(Work&& work) {
  std::exception_ptr raised;
  {
    const Unlocked unlocked;
    try {
      work();
    } catch (...) {
      raised = std::current_exception();
    }
  }
  if (raised != nullptr) std::rethrow_exception(raised);
}

// What ends a wait of the calling thread: Ctrl-C on Python's main thread, which alone handles signals; null elsewhere.
sync::Poll* signal_poll();

// `seconds` of infinity, or more than a clock can count, means for ever.
inline sync::Clock::duration timeout_of(double seconds) {
  const std::chrono::duration<double> wanted(seconds);
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
  return wanted < kLongest ? std::chrono::duration_cast<sync::Clock::duration>(wanted) : sync::kForever;
}

}  // namespace ringlet::bindings
