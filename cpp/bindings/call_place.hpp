// The place in the user's program that makes a call, for the flight recorder.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::bindings {

// Before a call, with the interpreter lock: the innermost frame of this thread outside of Ringlet is the place of the
// operations that the flight recorder records. A thread without such a frame belongs to Ringlet: it uses the place of
// make_calls_for(). Returns the number of the place, 0 for none. Takes some 20 ns; the first call at each place takes
// longer.
std::uint64_t note_place();
// Sets the place of later calls of this thread, which another thread got from note_place(). The calls have no place if
// the recorder has replaced it since.
void make_calls_for(std::uint64_t place) noexcept;

// `describe` returns the text of the place that calls it. Frames of files whose names begin with one of `files` are
// not the user's. The last call counts.
void set_places(pybind11::function describe, std::vector<std::string> files);

}  // namespace ringlet::bindings
