// The memory of any object with the buffer protocol, as bytes.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <span>

#include "ringlet/core/error.hpp"

namespace ringlet::bindings {

// Holds a contiguous buffer, which does not move while held. Other threads may write to it.
class BytesView {
 public:
  explicit BytesView(const pybind11::object& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw pybind11::error_already_set();
  }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;
  ~BytesView() { PyBuffer_Release(&view_); }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  std::span<const std::byte> part(std::size_t begin, std::size_t end) const {
    if (begin > end || end > bytes().size()) throw core::ArgumentError("the range lies outside of the buffer");
    return bytes().subspan(begin, end - begin);
  }

 private:
  Py_buffer view_;
};

}  // namespace ringlet::bindings
