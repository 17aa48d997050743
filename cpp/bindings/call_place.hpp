// The place in the user's program that makes a call, for the flight recorder.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::bindings {

// Before a call, with the interpreter lock: the innermost frame of this thread outside of Ringlet is the place of the
// operations that the flight recorder notes from now on. A thread without such a frame, which is one of Ringlet, has
// the place of the program for which it makes calls. Returns the number of the place, 0 for none. Takes some 20 ns; at
// each place, the first call takes more.
std::uint64_t note_place();
// This thread makes calls for the place with this number, as returned by note_place() in another thread, for as long as
// the place is stored.
void make_calls_for(std::uint64_t place) noexcept;

// `describe` returns the text of the place that calls it. Frames of files whose names begin with one of `files` are
// not the user's. The last call counts.
void set_places(pybind11::function describe, std::vector<std::string> files);

}  // namespace ringlet::bindings
