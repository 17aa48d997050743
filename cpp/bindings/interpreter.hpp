// Waiting without the interpreter lock.
#pragma once

#include <cxxabi.h>
#include <unistd.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>

#include "ringlet/sync/turnstile.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::bindings {

// Replica threads and ranks that are ready at the same time each need the interpreter lock for some microseconds.
sync::Turnstile& interpreter_turnstile();

// Releases the interpreter lock until the end of the scope. Threads that take turns each have a core to spin on. Up to
// Python 3.13, a thread that requests the lock during finalization is ended by unwinding its stack, which holds Python
// objects that it must not touch any more. Here such a thread blocks until the process has ended instead, as in Python
// 3.14 and later. Nothing may be thrown through the destructor: use without_interpreter.
class Unlocked {
#if defined(Py_GIL_DISABLED)
  static constexpr bool kHasInterpreterLock = false;
#else
  static constexpr bool kHasInterpreterLock = true;
#endif

 public:
  explicit Unlocked(bool takes_turns) : state_(PyEval_SaveThread()), takes_turns_(takes_turns && kHasInterpreterLock) {
    if constexpr (kHasInterpreterLock) interpreter_turnstile().leave();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() noexcept(false) {
    constexpr std::chrono::microseconds kMostOfATurn{50};
    if (takes_turns_) interpreter_turnstile().enter(kMostOfATurn);
#if defined(__GLIBCXX__)
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) ::pause();
    }
#else
    PyEval_RestoreThread(state_);
#endif
  }

 private:
  PyThreadState* state_;
  bool takes_turns_;
};

template <class Work>
void without_interpreter(Work&& work, bool takes_turns = false) {
  std::exception_ptr raised;
  {
    const Unlocked unlocked(takes_turns);
    try {
      work();
    } catch (...) {
      raised = std::current_exception();
    }
  }
  if (raised != nullptr) std::rethrow_exception(raised);
}

// The poll that ends a wait of the calling thread at Ctrl-C: only on Python's main thread, which handles signals; else
// null.
sync::Poll* signal_poll();

// `seconds` of infinity, or more than a clock can count, means no limit.
inline sync::Clock::duration timeout_of(double seconds) {
  const std::chrono::duration<double> wanted(seconds);
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
  return wanted < kLongest ? std::chrono::duration_cast<sync::Clock::duration>(wanted) : sync::kForever;
}

}  // namespace ringlet::bindings
