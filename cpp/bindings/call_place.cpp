#include "call_place.hpp"

#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#elif PY_VERSION_HEX < 0x030E0000
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_frame.h>
}
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringlet/record/recorder.hpp"

namespace ringlet::bindings {

namespace {

// Python's public functions create an object for each frame, which takes 35 ns; so frames are read directly where their
// layout is known.
struct Place {
  PyCodeObject* code;
  const void* instruction;  // unique while the code lives
};

#if PY_VERSION_HEX < 0x030B0000
using Frame = PyFrameObject;
const Frame* innermost() noexcept { return PyThreadState_Get()->frame; }
const Frame* caller_of(const Frame& frame) noexcept { return frame.f_back; }
Place place_of(const Frame& frame) noexcept {
  return {frame.f_code, PyBytes_AS_STRING(frame.f_code->co_code) + frame.f_lasti};
}
#elif PY_VERSION_HEX < 0x030E0000
using Frame = _PyInterpreterFrame;
const Frame* caller_of(const Frame& frame) noexcept { return frame.previous; }
#if PY_VERSION_HEX < 0x030D0000
const Frame* innermost() noexcept { return PyThreadState_Get()->cframe->current_frame; }
Place place_of(const Frame& frame) noexcept { return {frame.f_code, frame.prev_instr}; }
#else
const Frame* innermost() noexcept { return PyThreadState_Get()->current_frame; }
Place place_of(const Frame& frame) noexcept {
  return {reinterpret_cast<PyCodeObject*>(frame.f_executable), frame.instr_ptr};
}
#endif
#else
struct Frame {};  // unknown layout: calls have no place
const Frame* innermost() noexcept { return nullptr; }
const Frame* caller_of(const Frame&) noexcept { return nullptr; }
Place place_of(const Frame&) noexcept { return {}; }
#endif

// Places that have a number. Each keeps its code object alive, so that no other code object gets the same address. The
// interpreter lock serializes threads.
struct KnownPlace {
  Place place{};
  std::uint64_t number = 0;
};
constexpr std::size_t kWays = 2;
std::array<std::array<KnownPlace, kWays>, 256> known_places;
PyObject* describe_place = nullptr;
std::vector<std::string> other_files;
thread_local constinit std::uint64_t place_of_program = 0;  // for which a thread of Ringlet makes calls

bool is_users(const Frame& frame) noexcept {
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
  if (frame.owner == FRAME_OWNED_BY_CSTACK) return false;  // a call from C
#endif
  Py_ssize_t size = 0;
  const char* const chars = PyUnicode_AsUTF8AndSize(place_of(frame).code->co_filename, &size);
  if (chars == nullptr) {
    PyErr_Clear();
    return false;
  }
  const std::string_view file(chars, static_cast<std::size_t>(size));
  return std::ranges::none_of(other_files, [&](const std::string& other) { return file.starts_with(other); });
}

std::uint64_t number_of(Place place) {
  auto& ways = known_places[(reinterpret_cast<std::uintptr_t>(place.instruction) >> 1) * 0x9E3779B97F4A7C15 >> 56];
  for (const KnownPlace& known : ways) {
    if (known.place.instruction == place.instruction && record::has_place(known.number)) return known.number;
  }
  // Runs Python code: another thread may add this place meanwhile, and a signal may be handled.
  PyObject* const text = PyObject_CallNoArgs(describe_place);
  if (text == nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) throw pybind11::error_already_set();
  const char* const chars = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  if (chars == nullptr) PyErr_Clear();
  const std::uint64_t number = record::add_place(chars == nullptr ? "" : chars);
  Py_XDECREF(text);
  Py_INCREF(place.code);
  KnownPlace& oldest = *std::ranges::min_element(ways, {}, &KnownPlace::number);
  const KnownPlace replaced = std::exchange(oldest, {place, number});
  Py_XDECREF(replaced.place.code);
  return number;
}

}  // namespace

std::uint64_t note_place() {
  if (record::descriptor() < 0 || describe_place == nullptr) return 0;  // the recorder is opened after set_places
  const Frame* frame = innermost();
  while (frame != nullptr && !is_users(*frame)) frame = caller_of(*frame);
  std::uint64_t number = place_of_program;
  if (frame != nullptr) {
    number = number_of(place_of(*frame));
  } else if (!record::has_place(number)) {
    number = 0;
  }
  record::set_place(number);
  return number;
}

void make_calls_for(std::uint64_t place) noexcept { place_of_program = place; }

void set_places(pybind11::function describe, std::vector<std::string> files) {
  if (describe_place == nullptr) describe_place = describe.release().ptr();  // never freed
  other_files = std::move(files);
}

}  // namespace ringlet::bindings
