"""``ringlet tpu``: describe a TPU slice, place replicas on it and predict the cost of collectives, without a TPU."""

from __future__ import annotations

import argparse
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet.launcher.command_line import CommandError, closed_output_ignored

if TYPE_CHECKING:
    from ringlet.tpu import CollectiveCost, DeviceAssignment, StepCost, Topology

# Collectives that have an option for their size.
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "broadcast")
_BANDWIDTHS = ("usable", "published")
_PICTURES = (".svg", ".png")
# Value of --draw without a file: not a string, so that argparse does not treat it as a file.
_TERMINAL = True

_EPILOG = """\
examples:
  ringlet tpu v5p-4x4x8
  ringlet tpu v4-512 --all-reduce 1GiB
  ringlet tpu v5e-256 --all-reduce 4GB --slices 2 --json
  ringlet tpu v5e-16 --computation-shape 4,4,1,1 --axis core --all-to-all 64MiB --draw
  ringlet tpu v5p-128 --all-reduce 2GiB --flops 4e12 --hbm-bytes 6GB --draw slice.svg

On v4 and v5p a chip is one device, as on real slices; --no-megacore makes each
of its two cores a device. Sizes are for the full array, such as 4096, 64MiB or
1.5GB. Collectives run one after another, or concurrently with --at-once. Times
come from a model of the links, which docs/tpu.md describes.
"""


@dataclass(frozen=True)
class Report:
    """Result of the command: the cost of each collective alone, and of the step if it is more than one collective."""

    topology: Topology
    assignment: DeviceAssignment
    order: str
    costs: tuple[CollectiveCost, ...]
    step: StepCost | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.usage = "ringlet tpu SLICE [option ...]"
    parser.epilog = _EPILOG
    parser.add_argument("slice", metavar="SLICE", nargs="?", help="such as v4-512, v5litepod-16, v5p-4x4x8, v5e:8x16")
    parser.add_argument(
        "--megacore",
        action=argparse.BooleanOptionalAction,
        help="whether the two cores of a chip are one device (default on v4 and v5p, impossible on others)",
    )
    parser.add_argument("--twisted", action="store_true", help="shifted wrap links (n x n x 2n, n x 2n x 2n chips)")
    placing = parser.add_argument_group("placement")
    shape = "chips of a replica along x, y and z, and devices of each of these chips, 1 if omitted (1,1,1,1)"
    placing.add_argument("--computation-shape", metavar="X,Y,Z,C", default="1,1,1,1", help=shape)
    stride = "distance between the devices of a replica along each axis (1,1,1,1)"
    placing.add_argument("--computation-stride", metavar="X,Y,Z,C", default="1,1,1,1", help=stride)
    placing.add_argument("--replicas", metavar="N", help="number of replicas (as many as fit)")
    placing.add_argument("--order", choices=("auto", "ring", "mesh"), default="auto", help="order of TensorFlow (auto)")
    placing.add_argument("--objective", choices=("ring", "halo"), help="search for an order of lower cost")
    costing = parser.add_argument_group("collectives")
    for name in _COLLECTIVES:
        costing.add_argument(f"--{name.replace('_', '-')}", metavar="SIZE", help="cost for an array of this size")
    groups = "members: the replicas of each logical core (default), the logical cores of each replica, or all devices"
    costing.add_argument("--axis", choices=("replica", "core", "all"), default="replica", help=groups)
    costing.add_argument("--slices", metavar="N", default="1", help="equal slices, on one data-centre network (1)")
    speeds = "speed of a link: usable (default), published, or bytes per second, one way"
    costing.add_argument("--bandwidth", metavar="B", default="usable", help=speeds)
    costing.add_argument("--busiest", metavar="N", default="5", help="number of the busiest links to list (5)")
    step = parser.add_argument_group("a whole step")
    step.add_argument("--flops", metavar="F", default="0", help="operations of one device in a step, such as 4e12")
    step.add_argument("--hbm-bytes", metavar="SIZE", help="bytes between one device and its memory in a step")
    step.add_argument("--at-once", action="store_true", help="run the collectives concurrently")
    step.add_argument("--not-overlapped", action="store_true", help="communicate after the computation")
    parser.add_argument(
        "--draw",
        metavar="FILE",
        nargs="?",
        const=_TERMINAL,
        type=_picture,
        help="draw the slice with the load of its links: as text, or to FILE.svg or FILE.png",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _picture(file: str) -> str:
    if not file.lower().endswith(_PICTURES):
        raise argparse.ArgumentTypeError(
            f"{file!r} is not an .svg or .png file. Write 'ringlet tpu SLICE --draw' for text, or "
            "'ringlet tpu SLICE --draw FILE.svg' for a picture"
        )
    return file


def execute(options: argparse.Namespace) -> int:
    """Print the report, and draw the slice if requested; return the exit status."""
    from ringlet.launcher.commands import tpu_report

    if options.json and options.draw is _TERMINAL:
        raise CommandError("--draw prints text, which is not JSON. Write --draw FILE.svg, or omit --json")
    busiest = _count("--busiest", options.busiest, 0)
    try:
        report = _report(options)
    except (ValueError, TypeError) as error:
        raise CommandError(" ".join(str(error).split())) from error
    file = options.draw if isinstance(options.draw, str) else None
    if file:
        _write_picture(report, file)
    if options.json:
        lines = [json.dumps(tpu_report.as_json(report, busiest))]
    else:
        lines = tpu_report.as_text(report, busiest)
        lines += ["", f"Drawing: {file}"] if file else []
    with closed_output_ignored():
        print("\n".join(lines))
        if options.draw is _TERMINAL:
            print()
            _drawn(report).draw()
    return 0


def _drawn(report: Report) -> StepCost | CollectiveCost | DeviceAssignment:
    return (report.step or report.costs[0]) if report.costs else report.assignment


def _write_picture(report: Report, file: str) -> None:
    try:
        _drawn(report).draw(file)
    except ModuleNotFoundError as error:
        other = file[: -len(".png")] + ".svg"
        raise CommandError(
            f"--draw {file}: PNG needs matplotlib, which is not installed. Run pip install 'ringlet[plot]', or write "
            f"--draw {other}"
        ) from error
    except OSError as error:
        raise CommandError(
            f"--draw {file}: the file cannot be written: {error.strerror}. Name a file in an existing, writable folder"
        ) from error


def _report(options: argparse.Namespace) -> Report:
    from ringlet.tpu import (
        GENERATIONS,
        AcceleratorType,
        Collective,
        DeviceAssignment,
        DeviceOrderMode,
        Topology,
        simulate,
    )

    if options.slice is None:
        raise CommandError("no SLICE given: expected the name of a slice. Write ringlet tpu v4-128")
    generation = AcceleratorType.parse(options.slice).generation
    if options.megacore and not generation.has_megacore:
        combining = " and ".join(name for name, other in GENERATIONS.items() if other.has_megacore)
        raise CommandError(
            f"--megacore: the cores of a {generation.name} chip cannot form one device; only {combining} chips support "
            f"this. Omit --megacore: ringlet tpu {options.slice}"
        )
    megacore = generation.has_megacore if options.megacore is None else options.megacore
    try:
        topology = Topology.from_accelerator_type(options.slice, megacore=megacore, twisted=options.twisted)
    except ValueError as error:
        raise CommandError(f"--twisted: {error} Write ringlet tpu {options.slice}") from error
    shape = _four_numbers("--computation-shape", options.computation_shape)
    stride = _four_numbers("--computation-stride", options.computation_stride)
    if topology.is_megacore and shape[3] * stride[3] > 1:
        x, y, z, _ = shape
        raise CommandError(
            f"--computation-shape {options.computation_shape}: a {generation.name} chip is one device, so the last "
            f"number must be 1. Write --computation-shape {x},{y},{z},1 for whole chips, or add --no-megacore for cores"
        )
    replicas = _replicas(options, topology, shape, stride)
    mode = DeviceOrderMode[options.order.upper()]
    try:
        assignment = DeviceAssignment.build(topology, shape, stride, replicas, mode, objective=options.objective)
    except ValueError as error:
        if options.order != "ring":
            raise
        raise CommandError(
            f"--order ring: {replicas} replicas of --computation-shape {options.computation_shape} do not form "
            "rings, which need whole chips, no stride, and as many replicas as fit in the slice. Write --order auto"
        ) from error
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


def _replicas(options: argparse.Namespace, topology: Topology, shape: list[int], stride: list[int]) -> int:
    """Return the given number of replicas, by default as many as fit."""
    from ringlet.tpu.topology.topology_text import counted, unit_of

    mesh: list[int] = topology.mesh_shape.tolist()
    if any(size * step > length for length, size, step in zip(mesh, shape, stride, strict=True)):
        largest = ",".join(map(str, mesh))
        raise CommandError(
            f"a replica of --computation-shape {options.computation_shape} with --computation-stride "
            f"{options.computation_stride} does not fit in {options.slice}, which has {largest} devices along x, y, z "
            f"and in a chip. Write at most --computation-shape {largest}"
        )
    room = math.prod(length // (size * step) * step for length, size, step in zip(mesh, shape, stride, strict=True))
    if options.replicas is None:
        return room
    replicas = _count("--replicas", options.replicas, 1)
    if replicas > room:
        each = counted(math.prod(shape), unit_of(topology))
        raise CommandError(
            f"--replicas {replicas}: {options.slice} has room for {counted(room, 'replica')} of {each}. Write "
            f"--replicas {room}"
        )
    return replicas


def _four_numbers(option: str, text: str) -> list[int]:
    parts = re.split(r"[,x]", text.strip())
    parts += ["1"] * (len(parts) == 3)
    if len(parts) != 4 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise CommandError(
            f"{option} {text}: expected three or four positive numbers, for x, y, z and the devices of a chip. "
            f"Write {option} 2,2,1,1"
        )
    return [int(part) for part in parts]


def _count(option: str, text: str, least: int) -> int:
    if not text.strip().isdecimal() or int(text) < least:
        parts = text.strip().split("x")
        example = math.prod(map(int, parts)) if len(parts) > 1 and all(part.isdecimal() for part in parts) else 0
        example = max(least, example or 2)
        raise CommandError(f"{option} {text}: expected an integer, at least {least}. Write {option} {example}")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    is_speed = option == "--bandwidth"
    if not 0 <= number < math.inf or (is_speed and number == 0):
        expected = "'usable', 'published' or a positive number" if is_speed else "a number, not negative"
        raise CommandError(f"{option} {text}: expected {expected}. Write {option} {'4.5e10' if is_speed else '4e12'}")
    return number


def _size(option: str, text: str) -> int:
    from ringlet.tpu.units import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None
