"""MultiWorkerMirroredStrategy: collectives and variables over processes."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.cluster import ClusterSpec, SimpleClusterResolver
from ringlet.collectives import Op
from ringlet.strategy.multi_worker import multi_worker_extended
from ringlet.testing import run_on_ranks
from tests.strategy.contract import StrategyContract

EXPERIMENTAL = ringlet.experimental.MultiWorkerMirroredStrategy


@pytest.fixture(autouse=True)
def default_devices(monkeypatch):
    """Reset the number of devices, which another test of this process may have set."""
    monkeypatch.setattr(multi_worker_extended, "requested_devices", tuple)


class TestOneWorker(StrategyContract):
    COUNTS = (1, 2)

    @pytest.fixture(autouse=True)
    def devices(self, monkeypatch, num_replicas):
        names = tuple(f"CPU:{i}" for i in range(num_replicas))
        monkeypatch.setattr(multi_worker_extended, "requested_devices", lambda: names)

    def make(self, num_replicas):
        return ringlet.MultiWorkerMirroredStrategy()


# Parts of the contract that do not hold for one of several processes: an exception in one of them ends the strategy,
# concurrent use by two threads is refused, and each has a part of a dataset. Tests below cover these.
NOT_OVER_PROCESSES = {
    "test_an_exception_of_a_replica_is_raised_and_the_strategy_stays_usable",
    "test_two_threads_run_one_strategy_at_the_same_time",
    "test_distributed_datasets_feed_every_replica",
}
CONTRACT = [name for name in dir(StrategyContract) if name.startswith("test_") and name not in NOT_OVER_PROCESSES]


@pytest.mark.parametrize("name", CONTRACT)
def test_each_of_several_processes_keeps_the_contract_of_strategies(workers, name):
    program = """
        import inspect
        from tests.strategy.contract import StrategyContract
        class Contract(StrategyContract):
            def make(self, num_replicas):
                return ringlet.MultiWorkerMirroredStrategy(communication_options=strategy.extended._options)
            def here(self, num_replicas):
                return range(strategy.extended._first_replica, strategy.extended._first_replica + local)
        test = getattr(Contract(), name)
        given = {"strategy": strategy, "num_replicas": strategy.num_replicas_in_sync}
        test(**{parameter: given[parameter] for parameter in inspect.signature(test).parameters})
        answer = "passed"
    """
    assert workers.run(program, name=name, local=workers.num_local) == ["passed"] * 2


# --- making one -------------------------------------------------------------------------------------------------------


def resolver_of(cluster, task_type="worker", task_id=0):
    return SimpleClusterResolver(ClusterSpec(cluster), task_type=task_type, task_id=task_id)


def test_without_a_cluster_it_is_a_strategy_of_this_process():
    strategy = ringlet.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1
    assert strategy.cluster_resolver.cluster_spec().as_dict() == {}
    assert strategy.extended._workers is None
    assert strategy.extended.should_checkpoint


def test_the_only_worker_of_a_cluster_needs_no_rendezvous():
    strategy = ringlet.MultiWorkerMirroredStrategy(resolver_of({"worker": ["localhost:1"], "ps": ["localhost:2"]}))
    assert strategy.extended.worker_devices == ("/job:worker/replica:0/task:0/device:CPU:0",)
    assert strategy.run(lambda: float(ringlet.get_replica_context().all_reduce("SUM", 2.0))) == 2.0


def test_an_evaluator_is_a_single_process():
    cluster = {"worker": ["localhost:1", "localhost:2"], "evaluator": ["localhost:3"]}
    strategy = ringlet.MultiWorkerMirroredStrategy(resolver_of(cluster, "evaluator"))
    assert (strategy.num_replicas_in_sync, strategy.extended._workers) == (1, None)


def test_creating_a_strategy_does_not_wait():
    strategy = ringlet.MultiWorkerMirroredStrategy(resolver_of({"worker": ["localhost:1", "localhost:2"]}, task_id=1))
    assert strategy.num_replicas_in_sync == 2
    assert (strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id) == ("worker", 1)
    assert repr(strategy) == "MultiWorkerMirroredStrategy(['/job:worker/task:1 CPU:0'], worker 1 of 2)"
    assert strategy.run(lambda: 3) == 3
    assert not strategy.extended._workers.is_joined


@pytest.mark.parametrize("wrong", [{"cluster_resolver": "worker"}, {"communication_options": "RING"}])
def test_arguments_of_other_types_are_refused_as_in_tensorflow(wrong):
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"{name} must be an instance of .*got '{value}' of type str"):
        ringlet.MultiWorkerMirroredStrategy(**wrong)


def test_a_resolver_without_a_task_is_refused():
    with pytest.raises(ValueError, match="you must also specify `task_type` and `task_id`"):
        ringlet.MultiWorkerMirroredStrategy(SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:1"]})))


def test_the_experimental_spelling_has_another_order_of_arguments():
    implementation = ringlet.experimental.CommunicationImplementation.RING
    strategy = EXPERIMENTAL(implementation, resolver_of({"worker": ["localhost:1"]}))
    assert strategy.extended._options.implementation is implementation
    assert isinstance(strategy, ringlet.MultiWorkerMirroredStrategy)
    assert isinstance(ringlet.MultiWorkerMirroredStrategy(), EXPERIMENTAL)
    assert not isinstance(ringlet.MirroredStrategy(["CPU:0"]), EXPERIMENTAL)


# --- combining --------------------------------------------------------------------------------------------------------


def inputs(dtype, count):
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(3, 5)) * 100).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_all_reduce_and_reduce_have_the_bits_of_ranks_that_are_threads(workers, dtype, op):
    count = 2 * workers.num_local
    given = inputs(dtype, count)
    expected = run_on_ranks(count, lambda member: member.all_reduce(given[member.rank], Op[op]))[0]
    program = """
        rng = np.random.default_rng(0)
        given = [(rng.normal(size=(3, 5)) * 100).astype(dtype) for _ in range(strategy.num_replicas_in_sync)]
        mine = strategy.experimental_distribute_values_from_function(lambda c: given[c.replica_id_in_sync_group])
        every = strategy.run(lambda x: replica().all_reduce(op, x), args=(mine,))
        both = [strategy.experimental_local_results(every)[-1], strategy.reduce(op, mine, axis=None)]
        merged = strategy.run(
            lambda x: replica().merge_call(lambda s, y: s.extended.batch_reduce_to(op, [(y, y)])[0], args=(x,)),
            args=(mine,))
        both.append(strategy.experimental_local_results(merged)[0])
        answer = [[str(x.dtype), x.tobytes().hex()] for x in both]
    """
    wanted = [str(expected.dtype), expected.tobytes().hex()]
    assert workers.run(program, dtype=dtype, op=op) == [[wanted] * 3] * 2


def test_structures_travel_in_one_pass_each_way(workers):
    program = """
        tree = lambda i: {"a": np.array([i, 1.0]), "b": (np.float32(i), [np.int64(i)])}
        one = strategy.run(lambda: replica().all_reduce("SUM", tree(rank())))
        one = strategy.experimental_local_results(one)[0]
        values = strategy.experimental_distribute_values_from_function(lambda c: tree(c.replica_id_in_sync_group))
        answer = [one, strategy.reduce("SUM", values, axis=None)]
    """
    count = 2 * workers.num_local
    total = float(sum(range(count)))
    wanted = {"a": [total, count], "b": [total, [int(total)]]}
    assert workers.run(program) == [[wanted, wanted]] * 2


def test_a_value_that_is_not_distributed_counts_once_for_each_replica_of_its_worker(workers):
    program = "answer = [strategy.reduce('SUM', np.array(me + 1.0), None), strategy.gather(np.array([me]), 0)]"
    gathered = np.repeat([0, 1], workers.num_local).tolist()
    assert workers.run(program) == [[3.0 * workers.num_local, gathered]] * 2


def test_means_over_an_axis_weigh_each_row_alike_on_all_workers(workers):
    program = """
        rows = strategy.experimental_distribute_values_from_function(
            lambda c: np.arange(c.replica_id_in_sync_group + 1.0))
        answer = [strategy.reduce("MEAN", rows, axis=0), strategy.reduce("SUM", rows, axis=0), strategy.gather(rows, 0)]
    """
    joined = np.concatenate([np.arange(i + 1.0) for i in range(2 * workers.num_local)])
    wanted = [joined.mean(), joined.sum(), joined.tolist()]
    for answer in workers.run(program):
        np.testing.assert_allclose(answer[0], wanted[0])
        assert answer[1:] == wanted[1:]


def test_text_is_gathered_too_by_replicas_and_outside_of_them(workers):
    program = """
        mine = strategy.experimental_distribute_values_from_function(
            lambda c: np.array([b"x" * c.replica_id_in_sync_group, "ä"], object))
        inside = strategy.run(lambda x: replica().all_gather(x, axis=0), args=(mine,))
        outside = strategy.gather(mine, 0)
        inside = strategy.experimental_local_results(inside)[-1]
        answer = [list(map(str, inside)), list(map(str, outside))]
    """
    wanted = [text for i in range(2 * workers.num_local) for text in (str(b"x" * i), "ä")]
    assert workers.run(program) == [[wanted, wanted]] * 2


def test_slices_of_all_workers_are_concatenated(workers):
    program = """
        def step():
            slices = ringlet.IndexedSlices(np.full((1, 2), 4.0 * rank()), np.array([rank()]))
            return replica().all_reduce("MEAN", slices)
        inside = strategy.experimental_local_results(strategy.run(step))[-1]
        mine = strategy.experimental_distribute_values_from_function(
            lambda c: ringlet.IndexedSlices(np.full((1, 2), 4.0 * c.replica_id_in_sync_group),
                                            np.array([c.replica_id_in_sync_group])))
        outside = strategy.reduce("MEAN", mine, axis=None)
        answer = [[each.values, each.indices] for each in (inside, outside)]
    """
    count = 2 * workers.num_local
    wanted = [[[4.0 * i / count] * 2 for i in range(count)], list(range(count))]
    assert workers.run(program) == [[wanted, wanted]] * 2


def test_results_that_may_be_written_to_are_a_replicas_own(workers):
    program = """
        def step():
            total = replica().all_reduce("SUM", np.ones(2))
            total += rank()
            return total
        answer = strategy.experimental_local_results(
            strategy.run(step, options=ringlet.RunOptions(writable_results=True)))
    """
    count, local = 2 * workers.num_local, workers.num_local
    assert workers.run(program) == [[[count + first + i] * 2 for i in range(local)] for first in range(0, count, local)]


def test_options_are_defaults_of_all_calls(workers):
    program = """
        options = ringlet.experimental.CommunicationOptions(8, 20.0, "RING")
        strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
        def step():
            tree = [np.full(3, 1.0), np.full(2, 2.0)]
            return [replica().all_reduce("SUM", tree),
                    replica().all_reduce("SUM", tree, options=ringlet.experimental.CommunicationOptions(1024, 5.0))]
        answer = strategy.experimental_local_results(strategy.run(step))[0] + [
            strategy.extended._workers.call_options(None)._asdict()]
    """
    count = 2.0 * workers.num_local
    for answer in workers.run(program):
        assert answer[:2] == [[[count] * 3, [2 * count] * 2]] * 2
        assert answer[2] == {"algorithm": "Algorithm.RING", "bytes_per_pack": 8, "timeout_seconds": 0.0}


def test_blas_shares_the_cores_with_the_replicas_of_all_workers(workers):
    program = """
        from ringlet.devices.blas_threads import blas_limiter
        limiter = blas_limiter()
        def step():
            return sum(limiter._replicas.values())
        answer = [strategy.experimental_local_results(strategy.run(step))[0], len(limiter._replicas)]
    """
    assert workers.run(program) == [[2 * workers.num_local, 0]] * 2


# --- variables --------------------------------------------------------------------------------------------------------


def test_a_variable_begins_with_the_value_of_the_chief(workers):
    program = """
        with strategy.scope():
            v = ringlet.Variable(lambda: np.full(2, 5.0 + me), name="v")
        inside = strategy.run(lambda: ringlet.Variable(7.0 + me, name="w").read_value())
        answer = [v.read_value(), strategy.experimental_local_results(inside)[-1]]
    """
    assert workers.run(program) == [[[5.0, 5.0], 7.0]] * 2


def test_assignments_of_replicas_are_combined_over_all_workers(workers):
    program = """
        Sync, Agg = ringlet.VariableSynchronization, ringlet.VariableAggregation
        answer = []
        with strategy.scope():
            for synchronization in (Sync.ON_WRITE, Sync.ON_READ):
                for aggregation in (Agg.SUM, Agg.MEAN):
                    v = ringlet.Variable(0.0, synchronization=synchronization, aggregation=aggregation)
                    strategy.run(lambda: v.assign_add(float(rank() + 1)) and None)
                    answer.append(v.read_value())
    """
    count = 2 * workers.num_local
    total = count * (count + 1) / 2
    assert workers.run(program) == [[total, total / count] * 2] * 2


def test_scattered_rows_of_all_workers_are_added(workers):
    program = """
        with strategy.scope():
            v = ringlet.Variable(np.zeros(4), aggregation=ringlet.VariableAggregation.SUM)
        def step():
            v.scatter_add(ringlet.IndexedSlices(np.array([1.0]), np.array([rank()])))
        strategy.run(step)
        answer = v.read_value()
    """
    count = 2 * workers.num_local
    assert workers.run(program) == [[1.0] * count + [0.0] * (4 - count)] * 2


# --- datasets ---------------------------------------------------------------------------------------------------------


def test_a_worker_without_data_continues_with_empty_parts_until_all_are_done(workers):
    program = """
        rows = [7, 2]
        def dataset_fn(context):
            assert context.num_input_pipelines == 2 and context.input_pipeline_id == me
            return ringlet.data.Dataset.range(rows[me]).batch(1)
        distributed = strategy.distribute_datasets_from_function(dataset_fn)
        count = lambda x: replica().all_reduce("SUM", np.int64(len(x)))
        answer = [int(strategy.experimental_local_results(strategy.run(count, args=(x,)))[0]) for x in distributed]
    """
    first, second = workers.run(program)
    assert first == second
    assert sum(first) == 9


def test_the_end_of_data_inside_of_a_step_leaves_the_strategy_usable(workers):
    program = """
        data = iter(strategy.experimental_distribute_dataset(ringlet.data.Dataset.range(8).batch(8)))
        steps = 0
        for _ in range(3):
            try:
                while True:
                    x = next(data)
                    strategy.run(lambda x: replica().all_reduce("SUM", x.sum()), args=(x,))
                    steps += 1
            except StopIteration:
                pass
        def ends():
            replica().all_reduce("SUM", 1.0)
            raise LookupError("no more")
        for _ in range(2):
            try:
                strategy.run(ends)
            except LookupError:
                steps += 10
        answer = [steps, strategy.run(lambda: float(replica().all_reduce("SUM", 1.0)))]
        answer = [steps, strategy.experimental_local_results(answer[1])[0]]
    """
    assert workers.run(program) == [[21, 2.0 * workers.num_local]] * 2


# --- threads, copies and arguments ------------------------------------------------------------------------------------


def test_concurrent_use_of_a_strategy_is_an_error_and_strategies_of_their_own_work(workers):
    program = """
        from concurrent.futures import ThreadPoolExecutor
        import threading
        inside, leave = threading.Event(), threading.Event()
        def wait():
            inside.set()
            assert leave.wait(20)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(strategy.run, wait)
            assert inside.wait(20)
            try:
                strategy.run(lambda: 1)
            except RuntimeError as error:
                told = str(error)
            leave.set()
            first.result()
            strategies = [ringlet.MultiWorkerMirroredStrategy() for _ in range(2)]
            step = lambda x: float(replica().all_reduce("SUM", x))
            runs = [pool.submit(each.run, step, (1.0 + i,)) for i, each in enumerate(strategies)]
            totals = [s.experimental_local_results(run.result()) for s, run in zip(strategies, runs)]
        answer = [told, [total[0] for total in totals]]
    """
    for told, totals in workers.run(program):
        assert "two threads use the strategy of /job:worker/task:" in told
        assert totals == [2.0 * workers.num_local, 4.0 * workers.num_local]


def test_a_deep_copy_connects_to_the_copies_of_the_other_workers(workers):
    program = """
        import copy
        twin = copy.deepcopy(strategy)
        step = lambda: float(replica().all_reduce("SUM", 1.0))
        answer = [s.experimental_local_results(s.run(step))[0] for s in (twin, strategy)]
    """
    assert workers.run(program) == [[2.0 * workers.num_local] * 2] * 2


def test_an_argument_invalid_on_this_worker_only_is_refused_before_the_others_wait(two_by_two):
    program = """
        parts = [np.ones(2), np.ones(3)]
        try:
            strategy.reduce("SUM", ringlet.values.PerReplica(parts), axis=None)
        except ValueError as error:
            told = str(error)
        answer = [told, strategy.reduce("SUM", 1.0, axis=None)]
    """
    for told, total in two_by_two.run(program):
        assert (
            "float64[2] on replica 0 of this worker, float64[3] on replica 1. Pass arrays of one shape and dtype."
            in told
        )
        assert total == 4.0
