"""Which device combines which box of a partial array."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.resharding.reduction_plan import plan_reduction
from tests.sharding.every_layout import layouts

PARTIAL = [layout for layout in layouts((2, 2), 2) if layout.is_partial]
VALUES = [layout for layout in layouts((2, 2), 2) if not layout.is_partial]


@pytest.mark.parametrize("source", PARTIAL)
def test_what_devices_want_is_combined_once_from_every_part_and_sent_to_the_others(source):
    shape = (5, 3)
    held = source.boxes(shape)
    for target in VALUES:
        plan = plan_reduction(shape, source, target)
        has = np.zeros((4, *shape), int)
        combined = np.zeros(shape, int)
        for device, box, sources in plan.reductions:
            combined[box] += 1
            has[device][box] += 1
            for part, giver in enumerate(sources):
                assert source.parts.tile_of(giver) == part
                gives = np.zeros(shape, bool)
                gives[held[giver]] = True
                assert gives[box].all()
        assert (combined == 1).all()
        for giver, receiver, box in plan.messages:
            assert has[giver][box].all()
            has[receiver][box] += 1
        wanted = np.zeros((4, *shape), int)
        for device in target.holders:
            wanted[device][target.boxes(shape)[device]] = 1
        np.testing.assert_array_equal(has, wanted)


def test_devices_share_the_work_evenly():
    plan = plan_reduction((8, 2), Layout(4, (WHOLE, WHOLE), Cut(4, (0, 1, 2, 3))), Layout.replicated(4, 2))
    assert [(reduction.device, reduction.box[0]) for reduction in plan.reductions] == [
        (device, slice(2 * device, 2 * device + 2)) for device in range(4)
    ]


def test_what_cannot_be_cut_is_combined_by_one_device():
    plan = plan_reduction((), Layout(2, (), Cut(2, (0, 1))), Layout.replicated(2, 0))
    assert [(reduction.device, reduction.sources) for reduction in plan.reductions] == [(0, (0, 1))]
    assert [(message.source, message.target) for message in plan.messages] == [(0, 1)]


@pytest.mark.parametrize(
    ("parts", "target", "kind"),
    [
        # which part each of four devices has, the tiles that are wanted, what that is called
        (Cut(2, (0, 0, 1, 1)), WHOLE, "all-reduce"),
        (Cut(2, (0, 0, 1, 1)), Cut(2, (0, 0, 1, 1)), "reduce-scatter"),
        (Cut(4, (0, 1, 2, 3)), Cut(4, (3, 2, 1, 0)), "reduce-scatter"),
        (Cut(4, (0, 1, 2, 3)), Cut(2, (0, 0, 1, 1)), None),
    ],
)
def test_what_is_wanted_says_what_it_is_called(parts, target, kind):
    assert plan_reduction((4,), Layout(4, (WHOLE,), parts), Layout(4, (target,))).kind == kind


def test_copies_of_parts_are_combined_among_themselves():
    plan = plan_reduction((4,), Layout(4, (WHOLE,), Cut(2, (0, 0, 1, 1))), Layout.replicated(4, 1))
    assert (plan.groups, plan.kind) == (((0, 2), (1, 3)), "all-reduce")


@pytest.mark.parametrize(("target", "kind"), [((0, 1, 2, 3), "reduce-scatter"), ((3, 2, 1, 0), None)])
def test_it_is_a_reduce_scatter_only_among_devices_that_have_a_part_of_what_they_want(target, kind):
    source = Layout(4, (Cut(2, (0, 0, 1, 1)),), Cut(2, (0, 1, 0, 1)))
    assert plan_reduction((8,), source, Layout(4, (Cut(4, target),))).kind == kind
