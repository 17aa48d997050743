"""Report of ``ringlet tpu``, as text or as JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.cost_results import parts_text
from ringlet.tpu.drawing.terminal import has_colours
from ringlet.tpu.topology.topology_text import chips_used, counted, unit_of
from ringlet.tpu.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from ringlet.launcher.commands.tpu_command import Report
    from ringlet.tpu import CollectiveCost, StepCost

# Number of replicas listed before the last one, and the minimum width of folded lines.
_MOST_LISTED = 8
_LEAST_WIDTH = 24

_TIMES = ("seconds", "latency_seconds", "ici_seconds", "core_link_seconds", "pcie_seconds", "dcn_seconds")
_STEP_TIMES = (*_TIMES, "compute_seconds", "memory_seconds", "communication_seconds")


def as_json(report: Report, busiest: int) -> dict[str, Any]:
    """Return the report as JSON data, with up to `busiest` links of each collective and of the step."""
    topology, assignment = report.topology, report.assignment
    return {
        "slice": {
            "accelerator_type": topology.accelerator_type,
            "generation": topology.generation.name if topology.generation else None,
            "chips": topology.num_chips,
            "chip_shape": list(topology.chip_shape),
            "wrap": list(topology.wrap),
            "is_twisted": topology.twisted,
            "cores": topology.num_chips * topology.cores_per_chip,
            "devices": topology.num_devices,
            "mesh_shape": topology.mesh_shape.tolist(),
            "hosts": topology.num_tasks,
            "devices_per_host": topology.num_tpus_per_task,
        },
        "assignment": {
            "num_replicas": assignment.num_replicas,
            "num_cores_per_replica": assignment.num_cores_per_replica,
            "order": report.order,
            "core_assignment": assignment.core_assignment.tolist(),
        },
        "collectives": [_cost_json(cost, busiest) for cost in report.costs],
        "step": None if report.step is None else _step_json(report.step, busiest),
    }


def _cost_json(cost: CollectiveCost, busiest: int) -> dict[str, Any]:
    names = ("collective", "nbytes", "group_size", "num_groups", "slices", "algorithm", *_TIMES, "lower_bound_seconds")
    found = {name: getattr(cost, name) for name in (*names, "bound")}
    return found | {"seconds_by_algorithm": dict(cost.times), "busiest_links": _links_json(cost, busiest)}


def _step_json(step: StepCost, busiest: int) -> dict[str, Any]:
    found = {name: getattr(step, name) for name in (*_STEP_TIMES, "is_overlapped", "bound")}
    return found | {"busiest_links": _links_json(step, busiest)}


def _links_json(cost: CollectiveCost | StepCost, busiest: int) -> list[dict[str, Any]]:
    return [asdict(link) for link in cost.busiest_links(busiest)]


def as_text(report: Report, busiest: int) -> list[str]:
    """Return the report as lines that fit the terminal, with up to `busiest` links of each collective and the step."""
    lines = repr(report.topology).splitlines()
    lines += ["", *_assignment_lines(report)]
    for cost in report.costs:
        lines += ["", *_cost_lines(cost, busiest)]
    if report.step is not None:
        lines += ["", *_step_lines(report.step, busiest)]
    width = max(_LEAST_WIDTH, shutil.get_terminal_size((80, 24)).columns)
    return [part for line in lines for part in _folded(line, width)]


def _folded(line: str, width: int) -> list[str]:
    """Fold a line and indent its continuation. Headings are bold on a terminal."""
    indent = len(line) - len(line.lstrip())
    parts = textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * min(indent + 4, width // 3),
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]
    if indent == 0 and line and has_colours(sys.stdout):
        return [f"\x1b[1m{part}\x1b[0m" for part in parts]
    return parts


def _assignment_lines(report: Report) -> Iterator[str]:
    assignment = report.assignment
    count, each = assignment.num_replicas, assignment.num_cores_per_replica
    unit = unit_of(report.topology)
    used = chips_used(report.topology, assignment.core_assignment)
    parts = [f"Assignment of {counted(count, 'replica')} of {counted(each, unit)}, {report.order}", used]
    yield "; ".join(filter(None, parts))
    listed = list(range(count)) if count <= _MOST_LISTED + 1 else [*range(_MOST_LISTED), count - 1]
    digits = len(str(count - 1))
    for replica in listed:
        if replica == count - 1 and count > len(listed):
            yield f"  ... {count - len(listed)} more ..."
        yield f"  replica {replica:>{digits}}  {_place(report, replica)}"


def _place(report: Report, replica: int) -> str:
    """Return the hosts of a replica, and its chips with their cores."""
    cores = report.assignment.core_assignment[replica]
    hosts = sorted(set(report.topology.hosts[tuple(cores[:, :3].T)].tolist()))
    chips: dict[str, list[int]] = {}
    for *chip, core in cores.tolist():
        chips.setdefault(",".join(map(str, chip)), []).append(core)
    shows_cores = int(report.topology.mesh_shape[3]) > 1
    texts = [chip + (f" cores {'+'.join(map(str, numbers))}" if shows_cores else "") for chip, numbers in chips.items()]
    shown = texts if len(texts) <= _MOST_LISTED else [*texts[: _MOST_LISTED - 1], "...", texts[-1]]
    return f"host{'s' * (len(hosts) > 1)} {_ranges(hosts)}: {'; '.join(shown)}"


def _ranges(numbers: list[int]) -> str:
    """Format numbers as ranges, such as ``0-3,8`` for 0, 1, 2, 3, 8."""
    array = np.array(numbers)
    runs = np.split(array, np.flatnonzero(np.diff(array) != 1) + 1)
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _cost_lines(cost: CollectiveCost, busiest: int) -> Iterator[str]:
    groups = f" in each of {cost.num_groups} groups" if cost.num_groups > 1 else ""
    slices = f" of each of {cost.slices} slices" if cost.slices > 1 else ""
    yield f"{cost.collective} of {format_bytes(cost.nbytes)} over {counted(cost.group_size, 'device')}{groups}{slices}"
    if cost.seconds == 0:
        yield "  nothing to do"
        return
    times = {name: format_seconds(seconds) for name, seconds in cost.times.items()}
    rows = {**times, "lower bound": format_seconds(cost.lower_bound_seconds)}
    width = max(map(len, rows))
    aligned = max(map(len, rows.values()))
    for name, text in rows.items():
        parts = f"  {parts_text(cost)}; bound by {cost.bound}" if name == cost.algorithm else ""
        yield f"  {name:<{width}}  {text:>{aligned}}{parts}"
    yield from _link_lines(cost, busiest)


def _link_lines(cost: CollectiveCost | StepCost, busiest: int) -> Iterator[str]:
    links = cost.busiest_links(busiest)
    if links:
        used = int((cost.link_bytes > 0).sum())
        equal = int((cost.link_seconds >= links[0].seconds * (1 - 1e-9)).sum())
        yield f"  busiest of {used} links in use ({len(cost.link_bytes)} in all); {equal} as busy as the first"
        yield from (f"    {link}" for link in links)


def _step_lines(step: StepCost, busiest: int) -> Iterator[str]:
    how = "overlapped" if step.is_overlapped else "computation first"
    yield f"Step of {format_seconds(step.seconds)}, {how}: bound by {step.bound}"
    rows = {"compute": step.compute_seconds, "memory": step.memory_seconds, "communication": step.communication_seconds}
    for name, seconds in rows.items():
        yield f"  {name:<13}  {format_seconds(seconds)}"
    yield from _link_lines(step, busiest)
