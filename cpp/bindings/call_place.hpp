// The place in the user's program that makes a call, for the flight recorder.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace ringlet::bindings {

// Before a call, with the interpreter lock: the innermost frame of this thread outside of Ringlet becomes the place of
// the operations that the flight recorder records. Takes some 20 ns; the first call at each place takes longer.
void note_place();

// `describe` returns the text of the place that calls it. Frames of files whose names begin with one of `own_files` are
// not the user's.
void set_places(pybind11::function describe, std::vector<std::string> own_files);

}  // namespace ringlet::bindings
