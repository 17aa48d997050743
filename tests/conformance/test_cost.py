"""Worked examples of the cost model: by closed form, and by adding up bytes on links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringlet.tpu import Topology
from tests.tpu.closed_forms import axes_seconds, axis_seconds, between_slices_seconds, point_to_point_seconds

EXAMPLES = json.loads((Path(__file__).parent / "golden" / "cost_examples.json").read_text())["examples"]
CASES = [pytest.param(example, id=str(example["id"])) for example in EXAMPLES]
RELATIVE = 1e-9  # as the file says

# Which collective an example is about, and what else it says beside its inputs: only the first one is asymptotic.
COLLECTIVE = {
    1: "all_gather",
    2: "all_gather",
    3: "all_gather",
    "3b": "all_reduce",
    4: "all_gather",
    "4b": "all_gather",
    "4c": "all_reduce",
    5: "all_gather",
    6: "all_gather",
    7: "all_to_all",
    8: "all_to_all",
}
SCHEDULE = {10: "rotated", 11: "sequential", 12: "rotated", "12b": "sequential", 13: "rotated"}


def closed_form(number: int | str, given: dict[str, Any]) -> float:
    """The example by its formula."""
    speeds = {"bytes_per_second": given["W"], "hop_seconds": given["alpha"]}
    if number == 9:
        return point_to_point_seconds(given["V"], given["hops"], given["paths"], **speeds)
    if number == 14:
        inside = axes_seconds("all_reduce", given["V"], (16, 16), wrap=True, **speeds)
        return inside + between_slices_seconds(given["V"], given["slices"], given["hosts_per_slice"], given["W_host"])
    if number in SCHEDULE:
        return axes_seconds(
            "all_reduce", given["V"], given["dims"], wrap=given["wrap"], schedule=SCHEDULE[number], **speeds
        )
    model = "asymptotic" if number == 1 else "exact"
    return axis_seconds(COLLECTIVE[number], given["V"], given["N"], wrap=given["wrap"], model=model, **speeds)


def mesh(shape: list[int], wrap: bool) -> Topology:
    """A mesh of one device a chip."""
    shape = [*shape, 1, 1, 1][:3]
    coordinates = [[[x, y, z, 0] for x in range(shape[0]) for y in range(shape[1]) for z in range(shape[2])]]
    return Topology(mesh_shape=[*shape, 1], device_coordinates=coordinates, wrap=[wrap and n > 1 for n in shape])


def link_model(number: int | str, given: dict[str, Any]) -> float:
    """The example by routing every message."""
    speeds = {"bandwidth": given["W"], "hop_seconds": given["alpha"]}
    if number == 9:
        topology = Topology.from_accelerator_type("v5e-16")
        corner = topology.device_coordinates.reshape(-1, 4).tolist().index([3, 3, 0, 0])
        groups = [[0, corner]]
        cost = topology_cost(topology, "point_to_point", given["V"], groups=groups, **speeds)
    elif number == 14:
        # As delivered: 64 virtual machines of 4 chips, on 32 machines of 8.
        cost = topology_cost(
            Topology.from_accelerator_type("v5e-256"), "all_reduce", given["V"], slices=given["slices"], **speeds
        )
    elif number in SCHEDULE:
        topology = mesh(given["dims"], given["wrap"])
        cost = topology_cost(topology, "all_reduce", given["V"], algorithm=SCHEDULE[number], **speeds)
    else:
        model = "asymptotic" if number == 1 else "exact"
        topology = mesh([given["N"]], given["wrap"])
        cost = topology_cost(topology, COLLECTIVE[number], given["V"], model=model, **speeds)
    return cost.seconds


def topology_cost(topology: Topology, collective: str, nbytes: float, **options: Any) -> Any:
    """What a collective over all devices of a topology costs."""
    from ringlet.tpu.cost.collective_cost import collective_cost

    return collective_cost(topology, collective, nbytes, **options)


@pytest.mark.parametrize("example", CASES)
def test_a_closed_form_gives_the_worked_answer(example):
    assert closed_form(example["id"], example["inputs"]) == pytest.approx(example["seconds"], rel=RELATIVE)


@pytest.mark.parametrize("example", CASES)
def test_the_link_model_gives_the_worked_answer(example):
    assert link_model(example["id"], example["inputs"]) == pytest.approx(example["seconds"], rel=RELATIVE)
