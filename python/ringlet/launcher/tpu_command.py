"""``ringlet tpu``: a TPU slice, where replicas go on it, and what collectives cost there. No TPU is needed."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet.launcher.command_line import CommandError

if TYPE_CHECKING:
    from ringlet.tpu import CollectiveCost, DeviceAssignment, StepCost, Topology

__all__ = ["Report", "add_arguments", "execute"]

# Options for the size of a collective, and which one they mean.
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "broadcast")
_BANDWIDTHS = ("usable", "published")

_EPILOG = """\
examples:
  ringlet tpu v5p-4x4x8
  ringlet tpu v4-512 --computation-shape 1,1,1,2 --replicas 256 --all-reduce 1GiB
  ringlet tpu v5e-256 --all-reduce 4GB --slices 2 --json
  ringlet tpu v5e-16 --computation-shape 4,4,1,1 --axis core --all-to-all 64MiB --draw
  ringlet tpu v5p-128 --megacore --all-reduce 2GiB --flops 4e12 --hbm-bytes 6GB

Sizes are those of the full array, as 4096, 64MiB or 1.5GB. Several collectives
follow one another, or share the links with --at-once. Times come from a model
of the links; docs/tpu.md says how it counts.
"""


@dataclass(frozen=True)
class Report:
    """Result of the command: the cost of each collective alone, and of all of it together if there is more than one."""

    topology: Topology
    assignment: DeviceAssignment
    order: str
    costs: tuple[CollectiveCost, ...]
    step: StepCost | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line to `parser`."""
    parser.usage = "ringlet tpu SLICE [option ...]"
    parser.epilog = _EPILOG
    parser.add_argument("slice", metavar="SLICE", help="such as v4-512, v5litepod-16, v5p-4x4x8, v5e:8x16")
    parser.add_argument("--megacore", action="store_true", help="the two cores of a chip are one device (v4, v5p)")
    parser.add_argument("--twisted", action="store_true", help="wrap links are shifted (n x n x 2n, n x 2n x 2n)")
    placing = parser.add_argument_group("placement")
    placing.add_argument("--computation-shape", metavar="X,Y,Z,C", default="1,1,1,1", help="cores of a replica")
    placing.add_argument("--computation-stride", metavar="X,Y,Z,C", default="1,1,1,1", help="how far apart they are")
    placing.add_argument("--replicas", metavar="N", help="as many as find room by default")
    placing.add_argument("--order", choices=("auto", "ring", "mesh"), default="auto", help="as TensorFlow's modes")
    placing.add_argument("--objective", choices=("ring", "halo"), help="search for a better order than that")
    costing = parser.add_argument_group("collectives")
    for name in _COLLECTIVES:
        costing.add_argument(f"--{name.replace('_', '-')}", metavar="SIZE", help="cost for an array of this size")
    who = "the replicas of each logical core (default), the logical cores of each replica, or all devices"
    costing.add_argument("--axis", choices=("replica", "core", "all"), default="replica", help=f"who takes part: {who}")
    costing.add_argument("--slices", metavar="N", default="1", help="equal slices that the data-centre network joins")
    speeds = "usable (default), published, or bytes per second, one way"
    costing.add_argument("--bandwidth", metavar="B", default="usable", help=f"of links: {speeds}")
    costing.add_argument("--busiest", metavar="N", default="5", help="how many of the busiest links to list (5)")
    step = parser.add_argument_group("a whole step")
    step.add_argument("--flops", metavar="F", default="0", help="operations of one device in a step, such as 4e12")
    step.add_argument("--hbm-bytes", metavar="SIZE", help="bytes between one device and its memory in a step")
    step.add_argument("--at-once", action="store_true", help="the collectives run at the same time")
    step.add_argument("--not-overlapped", action="store_true", help="devices compute first and communicate then")
    parser.add_argument("--draw", action="store_true", help="draw the slice, with the load of its links")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print what was asked for; give the exit status."""
    try:
        report = _report(options)
    except (ValueError, TypeError) as error:
        raise CommandError(" ".join(str(error).split())) from error
    from ringlet.launcher import tpu_report

    if options.json:
        return _print([json.dumps(tpu_report.as_json(report, _count("--busiest", options.busiest, 0)))])
    return _print(tpu_report.as_text(report, _count("--busiest", options.busiest, 0)), draw=options.draw, report=report)


def _print(lines: list[str], *, draw: bool = False, report: Report | None = None) -> int:
    try:
        print("\n".join(lines))
        if draw and report is not None:
            loads = (report.step or report.costs[0]).link_bytes if report.costs else None
            print()
            report.assignment.draw(loads=loads)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _report(options: argparse.Namespace) -> Report:
    from ringlet.tpu import Collective, DeviceAssignment, DeviceOrderMode, Topology, simulate

    topology = Topology.from_accelerator_type(options.slice, megacore=options.megacore, twisted=options.twisted)
    shape = _four_numbers("--computation-shape", options.computation_shape)
    stride = _four_numbers("--computation-stride", options.computation_stride)
    assignment = DeviceAssignment.build(
        topology,
        shape,
        stride,
        _replicas(options.replicas, topology, shape, stride),
        DeviceOrderMode[options.order.upper()],
        objective=options.objective,
    )
    slices = _count("--slices", options.slices, 1)
    wanted = [
        Collective(name, _size(f"--{name.replace('_', '-')}", text), options.axis, slices=slices)
        for name in _COLLECTIVES
        if (text := getattr(options, name)) is not None
    ]
    step = simulate(
        assignment,
        [wanted] if options.at_once else wanted,
        flops=_number("--flops", options.flops),
        hbm_bytes=0 if options.hbm_bytes is None else _size("--hbm-bytes", options.hbm_bytes),
        is_overlapped=not options.not_overlapped,
        bandwidth=options.bandwidth if options.bandwidth in _BANDWIDTHS else _number("--bandwidth", options.bandwidth),
    )
    is_whole = len(wanted) > 1 or step.compute_seconds > 0 or step.memory_seconds > 0
    order = f"order {options.order}" + (f", improved for {options.objective}" if options.objective else "")
    return Report(topology, assignment, order, step.collectives, step if is_whole else None)


def _replicas(text: str | None, topology: Topology, shape: list[int], stride: list[int]) -> int:
    if text is not None:
        return _count("--replicas", text, 1)
    mesh: list[int] = topology.mesh_shape.tolist()
    room = [length // (size * step) * step for length, size, step in zip(mesh, shape, stride, strict=True)]
    return max(1, math.prod(room))  # what does not fit at all is said by build()


def _four_numbers(option: str, text: str) -> list[int]:
    parts = re.split(r"[,x]", text.strip())
    if len(parts) != 4 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise CommandError(f"{option} {text}: give four positive numbers, along x, y, z and core, such as 1,1,1,2")
    return [int(part) for part in parts]


def _count(option: str, text: str, least: int) -> int:
    if not text.strip().isdecimal() or int(text) < least:
        raise CommandError(f"{option} {text}: give a whole number, at least {least}")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        also = " 'usable', 'published' or" if option == "--bandwidth" else ""
        raise CommandError(f"{option} {text}: give{also} a number such as 4.5e10")
    return number


def _size(option: str, text: str) -> int:
    from ringlet.tpu.units import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None
