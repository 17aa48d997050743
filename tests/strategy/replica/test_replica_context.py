"""ReplicaContext: its id, all_reduce of all arrays and structures, and misuse."""

from __future__ import annotations

import collections
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet import nest
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.replica import replica_context
from ringlet.values import PerReplica

Point = collections.namedtuple("Point", ["x", "y"])


def replica() -> ringlet.ReplicaContext:
    current = ringlet.get_replica_context()
    assert current is not None
    return current


def mirrored(num_replicas: int = 2) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


STRATEGIES = {n: mirrored(n) for n in (1, 2, 3)}
every_count = pytest.mark.parametrize("num_replicas", STRATEGIES)


def all_reduce_everywhere(num_replicas: int, components: list[Any], op: Any = "SUM", **options: Any) -> tuple[Any, ...]:
    """Return the result of each replica for its component."""
    strategy = STRATEGIES[num_replicas]
    answer = strategy.run(lambda x: replica().all_reduce(op, x, **options), args=(PerReplica(components),))
    return strategy.experimental_local_results(answer)


# --- what it tells --------------------------------------------------------------------------------------------------


def test_the_id_is_a_read_only_int32_array_without_dimensions():
    for i, found in enumerate(STRATEGIES[3].run(lambda: replica().replica_id_in_sync_group).values):
        assert (type(found), found.shape, found.dtype, int(found)) == (np.ndarray, (), np.int32, i)
        assert not found.flags.writeable


def test_replicas_that_request_their_first_ids_at_the_same_time_get_their_own(monkeypatch):
    both_are_here = threading.Barrier(2, timeout=5)

    def array(value: int, dtype: Any) -> np.ndarray:
        both_are_here.wait()
        return np.array(value, dtype)

    monkeypatch.setattr(replica_context, "_id_arrays", type(replica_context._id_arrays)())
    monkeypatch.setattr(replica_context, "np", types.SimpleNamespace(array=array, int32=np.int32))
    with ThreadPoolExecutor(2) as threads:
        assert [int(found) for found in threads.map(replica_context._id_array, range(2))] == [0, 1]


def test_the_id_selects_from_lists():
    assert STRATEGIES[2].run(lambda: ["a", "b"][replica().replica_id_in_sync_group]).values == ("a", "b")


def test_it_prints_replica_and_strategy():
    assert STRATEGIES[2].run(lambda: repr(replica())).values[1] == (
        "<ReplicaContext of replica 1 of MirroredStrategy(['CPU:0', 'CPU:1'])>"
    )


@pytest.mark.parametrize(("given_id", "found"), [(2, 2), (np.int64(3), 3), (np.array(1, np.int32), 1), (None, None)])
def test_users_may_make_one(given_id, found):
    assert ringlet.ReplicaContext(STRATEGIES[2], given_id).replica_id_in_sync_group == found


@pytest.mark.parametrize("given_id", ["0", 1.5, [0], np.zeros(1, int)])
def test_a_non_integer_id_is_refused(given_id):
    with pytest.raises(ValueError, match="replica_id_in_sync_group can only be an integer"):
        ringlet.ReplicaContext(STRATEGIES[2], given_id)


# --- where it may be used -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use", [lambda c: c.all_reduce("SUM", 1.0), lambda c: c.merge_call(lambda _: 1), lambda c: c.devices]
)
@every_count
def test_a_context_of_an_earlier_run_is_refused_everywhere(num_replicas, use):
    strategy = STRATEGIES[num_replicas]
    stale: list[ringlet.ReplicaContext] = []
    strategy.run(lambda: stale.append(replica()))
    with pytest.raises(RuntimeError, match="Mismatching strategies: the default strategy is current"):
        use(stale[0])
    with strategy.scope(), pytest.raises(RuntimeError, match="cross-replica context"):
        use(stale[0])
    with pytest.raises(RuntimeError, match="Mismatching ReplicaContext"):
        strategy.run(lambda: use(stale[0]))
    with pytest.raises(RuntimeError, match="Mismatching strategies"):
        mirrored(2).run(lambda: use(stale[0]))


def test_a_wrapped_function_may_use_the_replica_from_a_thread_of_its_own():
    def step() -> Any:
        results = []
        call = ringlet.context.wrap(lambda: results.append(replica().all_reduce("SUM", np.ones(2))))
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(timeout=60)
        return results[0]

    assert [result.tolist() for result in STRATEGIES[2].run(step).values] == [[2, 2], [2, 2]]


@pytest.mark.parametrize("is_in_a_later_run", [False, True])
def test_a_thread_that_outlives_its_run_cannot_join_a_later_one(is_in_a_later_run):
    may_begin = threading.Event()
    refusals: list[str] = []
    threads: list[threading.Thread] = []

    def late() -> None:
        may_begin.wait(60)
        try:
            replica().all_reduce("SUM", 1000.0)
        except RuntimeError as error:
            refusals.append(str(error))

    def first_step() -> Any:
        if int(replica().replica_id_in_sync_group) == 0:
            threads.append(threading.Thread(target=ringlet.context.wrap(late)))
            threads[0].start()
        return replica().all_reduce("SUM", 1.0)

    def wait_for_the_thread() -> None:
        may_begin.set()
        threads[0].join(timeout=60)

    def second_step() -> Any:
        if int(replica().replica_id_in_sync_group) == 0 and is_in_a_later_run:
            wait_for_the_thread()
        return replica().all_reduce("SUM", 1.0)

    strategy = mirrored(2)
    strategy.run(first_step)
    if not is_in_a_later_run:
        wait_for_the_thread()
    assert [float(result) for result in strategy.run(second_step).values] == [2, 2]
    assert [text.partition(":")[0] for text in refusals] == ["Mismatching ReplicaContext"]


# --- all_reduce: arrays ---------------------------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": lambda x: x,
    "empty": lambda x: x[:0],
    "without dimensions": lambda x: x[1, 1],
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-2],
    "every second": lambda x: x[::2],
    "broadcast": lambda x: np.broadcast_to(x[0], (3, 4)),
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "misaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "memoryview": lambda x: memoryview(np.ascontiguousarray(x)),
}


@every_count
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_arrays_of_every_layout_are_summed(num_replicas, layout, dtype):
    components = [LAYOUTS[layout](np.arange(12).reshape(3, 4).astype(dtype) + 100 * i) for i in range(num_replicas)]
    expected = sum(np.asarray(x) for x in components)
    results = all_reduce_everywhere(num_replicas, components)
    for result in results:
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.asarray(components[0]).dtype.newbyteorder("=")


@every_count
def test_numbers_are_arrays_without_dimensions(num_replicas):
    for result in all_reduce_everywhere(num_replicas, [2.5] * num_replicas):
        assert (result.shape, result.dtype, float(result)) == ((), np.float64, 2.5 * num_replicas)


@every_count
def test_results_refuse_to_be_written_to(num_replicas):
    for result in all_reduce_everywhere(num_replicas, [np.ones(3)] * num_replicas):
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 2
        assert result.copy().flags.writeable


@every_count
def test_results_do_not_follow_later_changes_of_the_input(num_replicas):
    def step() -> Any:
        x = np.ones(3)
        result = replica().all_reduce("SUM", x)
        x[:] = 77
        return result

    strategy = STRATEGIES[num_replicas]
    for result in strategy.experimental_local_results(strategy.run(step)):
        assert result.tolist() == [num_replicas] * 3


def test_replicas_share_the_memory_of_a_result_and_have_arrays_of_their_own():
    first, second = all_reduce_everywhere(2, [np.ones(5000)] * 2)
    assert first is not second
    assert np.shares_memory(first, second)


@every_count
def test_mean_divides_by_the_number_of_replicas(num_replicas):
    for result in all_reduce_everywhere(num_replicas, [np.array([i, 3.0]) for i in range(num_replicas)], "MEAN"):
        assert result.tolist() == [(num_replicas - 1) / 2, 3]


def test_the_mean_of_integers_is_a_float64():
    for result in all_reduce_everywhere(2, [np.array([1, 2]), np.array([2, 4])], "MEAN"):
        assert (result.dtype, result.tolist()) == (np.float64, [1.5, 3])


@every_count
@pytest.mark.parametrize("value", [np.array(["text"]), np.array([object()]), "text", None, np.zeros(2, "M8[s]")])
def test_non_numeric_arrays_are_refused(num_replicas, value):
    with pytest.raises(InvalidArgumentError, match="float32"):
        all_reduce_everywhere(num_replicas, [value] * num_replicas)
    assert all_reduce_everywhere(num_replicas, [1.0] * num_replicas)[0] == num_replicas


def test_one_replica_gets_the_mean_of_integers_back_as_they_are():
    out = np.empty(2, np.int64)
    assert all_reduce_everywhere(1, [np.array([1, 2])], "MEAN", out=out)[0] is out
    assert out.tolist() == [1, 2]


# --- all_reduce: operations and options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("SUM", 2),
        ("sum", 2),
        ("Mean", 1),
        (ringlet.ReduceOp.MEAN, 1),
        (ringlet.collectives.Op.MEAN, 1),
        (ringlet.collectives.Op.SUM, 2),
        (None, 2),
        (1, 2),
    ],
)
def test_operations_are_read_by_name_and_other_objects_stand_for_sum(op, factor):
    assert all_reduce_everywhere(2, [3.0, 3.0], op)[0] == 3 * factor


@pytest.mark.parametrize("op", ["MAX", "", "sums"])
def test_an_unknown_operation_is_refused(op):
    with pytest.raises(ValueError, match=rf"'{op.upper()}' is not a valid ReduceOp: use 'SUM' or 'MEAN'"):
        all_reduce_everywhere(2, [1.0, 1.0], op)


@every_count
def test_options_without_an_implementation_are_refused(num_replicas):
    with pytest.raises(TypeError, match="CommunicationOptions"):
        all_reduce_everywhere(num_replicas, [1.0] * num_replicas, options={"implementation": "RING"})


# --- all_reduce: structures -----------------------------------------------------------------------------------------

structures = st.recursive(
    st.sampled_from(["float32", "float64", "int32", "int64"]).map(lambda dtype: np.ones(2, dtype)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=6,
)


@given(structure=structures, num_replicas=st.sampled_from(list(STRATEGIES)))
def test_the_answer_has_the_structure_of_the_value(structure, num_replicas):
    strategy = STRATEGIES[num_replicas]
    answer = strategy.run(lambda: replica().all_reduce("SUM", structure))
    for result in strategy.experimental_local_results(answer):
        doubled = nest.map_structure(lambda x: (num_replicas * x).tolist(), structure)
        assert nest.map_structure(np.ndarray.tolist, result) == doubled


def test_a_structure_travels_in_one_call():
    def step() -> int:
        replica().all_reduce("SUM", {"a": np.ones(2), "b": [np.ones(3, np.float32), 5]})
        run = replica()._run
        assert run is not None
        return run.threads.members[0]._core.calls

    assert mirrored(2).run(step) == 1


@every_count
def test_dictionaries_in_another_order_are_the_same_structure(num_replicas):
    def step() -> Any:
        names = ["a", "b"] if int(replica().replica_id_in_sync_group) == 0 else ["b", "a"]
        return replica().all_reduce("SUM", {name: np.full(2, 1.0 if name == "a" else 10.0) for name in names})

    strategy = STRATEGIES[num_replicas]
    for result in strategy.experimental_local_results(strategy.run(step)):
        assert (result["a"][0], result["b"][0]) == (num_replicas, 10 * num_replicas)


# --- all_reduce: out ------------------------------------------------------------------------------------------------


@every_count
def test_results_are_written_to_out(num_replicas):
    def step() -> Any:
        outs = {"a": np.empty(2), "b": (np.empty((2, 2), order="F"),)}
        answer = replica().all_reduce("SUM", {"a": np.array([1, 2.5]), "b": (np.ones((2, 2)),)}, out=outs)
        assert answer["a"] is outs["a"]
        assert answer["b"][0] is outs["b"][0]
        outs["a"] += 1
        return outs["a"], outs["b"][0]

    strategy = STRATEGIES[num_replicas]
    for a, b in strategy.experimental_local_results(strategy.run(step)):
        assert a.tolist() == [num_replicas + 1, 2.5 * num_replicas + 1]
        assert (b == num_replicas).all()


@every_count
def test_out_may_be_the_input(num_replicas):
    def step() -> Any:
        x = np.ones(3000)
        assert replica().all_reduce("SUM", x, out=x) is x
        return x

    strategy = STRATEGIES[num_replicas]
    for result in strategy.experimental_local_results(strategy.run(step)):
        assert (result == num_replicas).all()


@every_count
@pytest.mark.parametrize(
    ("out", "kind"),
    [
        (np.empty(3), InvalidArgumentError),
        (np.empty(2, np.float32), InvalidArgumentError),
        (np.frombuffer(bytes(16)), InvalidArgumentError),
        ([0.0, 0.0], ValueError),
        ({"a": np.empty(2)}, ValueError),
    ],
    ids=["shape", "dtype", "read-only", "list", "structure"],
)
def test_an_out_that_does_not_fit_is_refused(num_replicas, out, kind):
    with pytest.raises(kind, match="out"):
        all_reduce_everywhere(num_replicas, [np.ones(2)] * num_replicas, out=out)


# --- merge_call -----------------------------------------------------------------------------------------------------


@every_count
def test_identical_arguments_arrive_bare_and_others_as_per_replica(num_replicas):
    def step() -> Any:
        own = replica().replica_id_in_sync_group + 0.5
        return replica().merge_call(lambda _, *args: [type(arg).__name__ for arg in args], args=("same", own, (own,)))

    wrapped = "float64" if num_replicas == 1 else "PerReplica"
    assert STRATEGIES[num_replicas].run(step) == ["str", wrapped, "tuple"]


@every_count
def test_merge_fn_is_in_cross_replica_context(num_replicas):
    def merged(strategy: ringlet.Strategy) -> tuple[bool, bool, bool]:
        is_current = ringlet.get_strategy() is strategy is STRATEGIES[num_replicas]
        return is_current, ringlet.in_cross_replica_context(), ringlet.get_replica_context() is None

    def step() -> Any:
        answer = replica().merge_call(merged)
        return answer, ringlet.in_cross_replica_context()

    assert STRATEGIES[num_replicas].run(step) == ((True, True, True), False)
