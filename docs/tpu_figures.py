"""Figures of `tpu.md`, drawn by the library: ``python -m docs.tpu_figures`` rewrites them."""

from __future__ import annotations

from pathlib import Path

from ringlet.tpu import DeviceAssignment, DeviceOrderMode, Topology, drawing

FOLDER = Path(__file__).resolve().parent / "figures"

# Narrow enough for a column of text.
_WIDTH = 760


def figures() -> dict[str, str]:
    """Return each figure by the name of its file."""
    sixteen = Topology.from_accelerator_type("v5litepod-16")
    ring = DeviceAssignment.build(sixteen, num_replicas=16)
    mesh = DeviceAssignment.build(sixteen, num_replicas=16, device_order_mode=DeviceOrderMode.MESH)
    around = mesh.cost("all_reduce", 2**30, algorithm="ring")
    cube = Topology.from_accelerator_type("v5p-128", megacore=True)
    blocks = DeviceAssignment.build(cube, [2, 2, 2, 1], num_replicas=8)
    pod = Topology.from_accelerator_type("v5p-16x20x28", megacore=True)
    plan = DeviceAssignment.build(pod, [4, 4, 4, 1], num_replicas=140)
    return {
        "ring_order.svg": drawing.svg(ring, width=_WIDTH),
        "mesh_order.svg": drawing.svg(mesh, width=_WIDTH),
        "mesh_order_loads.svg": drawing.svg(mesh, loads=around.link_bytes, width=_WIDTH),
        "blocks.svg": drawing.svg(blocks, width=_WIDTH),
        "pod.svg": drawing.svg(plan),
    }


def main() -> None:
    """Write the figures."""
    FOLDER.mkdir(exist_ok=True)
    for name, picture in figures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
