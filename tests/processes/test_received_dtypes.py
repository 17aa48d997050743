"""Ranks that only receive need no array of the dtype, and have not imported the package that defines it."""

from __future__ import annotations

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

CALLS = {
    "broadcast": "member.broadcast(x, root=0)",
    "broadcast_many": "member.broadcast_many(None if x is None else [x, x], root=0)[1]",
    "scatter": "member.scatter(None if x is None else np.concatenate([x, x]), root=0)",
}

# Only rank 0 imports ml_dtypes, to make the array that it sends.
SCRIPT = """
import numpy as np
from ringlet.collectives import init_process_group

member = init_process_group(int(sys.argv[1]), 2, name=sys.argv[2], timeout_seconds=30)
x = None
if member.rank == 0:
    import ml_dtypes
    x = np.arange(4).astype(getattr(ml_dtypes, sys.argv[3]))
assert member.rank == 0 or "ml_dtypes" not in sys.modules
got = eval(sys.argv[4])
tell([got.dtype.name, got.astype(float).tolist(), int(member.all_reduce(np.ones(1))[0])])
"""

VARIABLE = """
import numpy as np
import ringlet

strategy = ringlet.MultiWorkerMirroredStrategy()
with strategy.scope():
    v = ringlet.Variable(np.arange(4), dtype=sys.argv[1])
tell([np.asarray(v.read_value()).dtype.name, np.asarray(v.read_value()).astype(float).tolist()])
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("call", CALLS)
def test_a_rank_receives_dtypes_that_it_has_never_seen(call, dtype):
    with Processes() as processes:
        ranks = [processes.start(SCRIPT, rank, f"{call} {dtype}", dtype, CALLS[call]) for rank in range(2)]
        assert [rank.told() for rank in ranks] == [[dtype, [0, 1, 2, 3], 2]] * 2


def test_a_rank_that_cannot_import_the_package_is_told_what_to_install():
    hidden = "sys.modules['ml_dtypes'] = None\n"
    script = SCRIPT.replace("got = eval", "if member.rank == 1:\n    " + hidden + "got = eval").replace(
        "tell([got", "if member.rank == 0: tell([got"
    )
    with Processes() as processes:
        sender = processes.start(script, 0, "missing", "bfloat16", CALLS["broadcast"])
        receiver = processes.start(script, 1, "missing", "bfloat16", CALLS["broadcast"])
        assert receiver.wait() == 1
        assert "another rank sent bfloat16" in receiver.said()
        assert "pip install ml_dtypes" in receiver.said()
        sender.end()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_a_variable_of_several_workers_has_such_a_dtype(dtype):
    from tests.strategy.workers import environment

    with Processes() as processes:
        workers = [
            processes.start(VARIABLE, dtype, environ=environment(index, 2, 1, f"dtype {dtype}")) for index in range(2)
        ]
        assert [worker.told() for worker in workers] == [[dtype, [0, 1, 2, 3]]] * 2
