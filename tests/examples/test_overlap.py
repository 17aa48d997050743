"""Training that overlaps the sums of gradients with the backward pass."""

from __future__ import annotations

import numpy as np

from examples import overlap
from ringlet.testing import run_on_ranks


def test_the_loss_falls_and_is_that_of_blocking_sums():
    found = run_on_ranks(2, lambda member: overlap.train(member, 5))
    assert found[0] == found[1]
    assert found[0][-1] < found[0][0]

    def blocking(member):
        class Done:
            def __init__(self, result):
                self.wait = lambda: result

        class Blocking:
            rank, all_reduce = member.rank, member.all_reduce

            def all_reduce_async(self, *args, **kwargs):
                return Done(member.all_reduce(*args, **kwargs))

        return overlap.train(Blocking(), 5)

    np.testing.assert_array_equal(run_on_ranks(2, blocking)[0], found[0])
