"""Memory for results that users may write to."""

from __future__ import annotations

import numpy as np

from ringlet.collectives import Op
from ringlet.collectives.adapters.adapter_outputs import KindOutputs, outputs_for
from ringlet.collectives.buffers import Outputs
from tests.collectives.kinds import Frozen, Written


def test_results_become_arrays_of_their_kinds_over_the_memory_that_was_written() -> None:
    outputs = KindOutputs([Written(0), Frozen(0), 0], [(2,), (), (1,)], [np.dtype("int8")] * 3)
    for place in outputs.direct:
        place[...] = 5
    written, frozen, plain = outputs.store()
    assert written.array is outputs.direct[0]
    assert [written.array.tolist(), frozen.array.tolist(), plain.tolist()] == [[5, 5], 5, [5]]
    assert [array.flags.writeable for array in (written.array, frozen.array, plain)] == [True, False, False]


def test_only_what_users_may_write_to_needs_memory_of_its_own() -> None:
    buffers = [np.ones(2), np.ones(2)]
    assert outputs_for([Frozen(buffers[0]), buffers[1]], buffers, Op.SUM, None) is None
    assert isinstance(outputs_for([Written(buffers[0]), buffers[1]], buffers, Op.SUM, None), KindOutputs)


def test_outputs_that_the_caller_gives_come_first() -> None:
    outs = [np.empty(2)]
    outputs = outputs_for([Written(np.ones(2))], [np.ones(2)], Op.SUM, outs)
    assert isinstance(outputs, Outputs)
    assert outputs.direct[0] is outs[0]


def test_the_dtype_is_that_of_the_result() -> None:
    outputs = outputs_for([Written(1)], [np.ones(2, "int32")], Op.MEAN, None)
    assert outputs is not None
    assert outputs.direct[0].dtype == np.float64
