#include <pybind11/stl.h>

#include <vector>

#include "arrays.hpp"
#include "registers.hpp"
#include "ringlet/tiling/tile_grid.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

py::list tile_views(const py::array& tensor, const std::vector<std::int64_t>& partition_dimensions) {
  const auto ndim = static_cast<std::size_t>(tensor.ndim());
  const std::span<const std::int64_t> shape(reinterpret_cast<const std::int64_t*>(tensor.shape()), ndim);
  const std::span<const std::int64_t> strides(reinterpret_cast<const std::int64_t*>(tensor.strides()), ndim);
  const tiling::TileGrid grid(shape, strides, partition_dimensions);
  py::list views(grid.num_tiles());
  std::size_t tile = 0;
  for (const std::int64_t offset : grid.offsets_bytes()) {
    views[tile++] = view_of(tensor, grid.tile_shape(), strides.data(), offset);
  }
  return views;
}

}  // namespace

void register_tiling(py::module_& m) { m.def("tile_views", tile_views, "tensor"_a, "partition_dimensions"_a); }

}  // namespace ringlet::bindings
