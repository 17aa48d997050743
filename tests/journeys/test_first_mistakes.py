"""First mistakes with meshes, strategies and coordinators: each error gives the line to write."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.coordinator import ClusterCoordinator
from ringlet.sharding import Mesh, NamedSharding, PartitionSpec, explain, shard, visualize
from tests.coordinator.in_threads import coordinator_of

MESH = Mesh({"x": 4, "y": 2})


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        (lambda: Mesh(8), "a mesh was given axes 8 and None"),
        (lambda: Mesh({"x": 4, "y": 0}), "got {'x': 4, 'y': 0} with 'y': a name is a string, and a size"),
        (lambda: MESH.sharding("z"), "does not have: name one of 'x', 'y'"),
        (lambda: MESH.sharding(PartitionSpec("x")), "write NamedSharding(mesh, PartitionSpec('x'))"),
        (lambda: shard({"w": np.ones(8)}, MESH.sharding("x")), "{name: shard(array, sharding) for name, array in"),
        (lambda: Mesh(x=4, y=2), "got (x=..., y=...). Write Mesh({'x': 4, 'y': 2})"),
        (
            lambda: visualize(shard(np.ones(8), MESH.sharding("x")), "x"),
            "got ShardedArray and shape='x': write visualize(x)",
        ),
        (lambda: visualize(MESH.sharding("x"), "x"), "visualize(mesh.sharding('x'), (8, 4))"),
    ],
)
def test_an_error_of_a_mesh_gives_the_line_to_write(mistake, remedy):
    with pytest.raises((TypeError, ValueError), match=re.escape(remedy)):
        mistake()


def test_a_mesh_has_the_names_that_jax_gives_its_parts():
    assert (MESH.axis_names, MESH.size) == (("x", "y"), 8)
    assert MESH.sharding("x") == NamedSharding(MESH, PartitionSpec("x"))


def test_the_operations_of_a_report_are_lines():
    with explain() as report:
        x = shard(np.ones((8, 4)), MESH.sharding("x"))
        float((x + 1).sum())
    assert repr(report.operations[0]) == "<add: float64[8,4] ('x', None) -> float64[8,4] ('x', None)>"
    assert all(len(repr(operation)) < 200 for operation in report.operations)


def test_the_default_strategy_shows_in_a_notebook():
    assert "replicas in sync" in ringlet.get_strategy()._repr_html_()


def test_a_second_array_is_not_taken_for_a_name():
    with pytest.raises(TypeError, match=r"got a list: write from_tensor_slices\(\(x, y\)\)"):
        ringlet.data.Dataset.from_tensor_slices([1, 2], [3, 4])


@pytest.mark.parametrize("jobs", [{}, {"worker": ["localhost:1"]}])
def test_a_cluster_without_parameter_servers_is_answered_with_a_resolver(jobs):
    resolver = ringlet.cluster_resolver.SimpleClusterResolver(ringlet.train.ClusterSpec(jobs))
    with pytest.raises(
        ValueError, match=r"or write ringlet\.cluster_resolver\.LocalClusterResolver\(workers=2, ps=1\)"
    ):
        ringlet.ParameterServerStrategy(resolver)


@pytest.fixture
def coordinator():
    with coordinator_of() as made:
        yield made


def test_errors_of_a_coordinator_give_the_line_to_write(coordinator):
    with pytest.raises(ValueError, match=r"Write ringlet\.ParameterServerStrategy\(ringlet\.cluster_resolver\.Local"):
        ClusterCoordinator(ringlet.MirroredStrategy(2))
    with pytest.raises(TypeError, match=r"write schedule\(fn, \.\.\.\) with the function, not with its result"):
        coordinator.schedule(print())
    with pytest.raises(ValueError, match=r"Pass value\.fetch\(\)"):
        coordinator.schedule(abs, args=(coordinator.schedule(abs, args=(-1,)),))
    dataset = coordinator.create_per_worker_dataset(lambda: ringlet.data.Dataset.range(3))
    with pytest.raises(NotImplementedError, match=r"schedule\(fn, args=\(iterator,\)\)"):
        next(iter(dataset))
    other = ringlet.Variable(0.0)
    with pytest.raises(TypeError, match=r"may use variables created in `with strategy\.scope\(\):`"):
        coordinator.schedule(lambda: other.assign_add(1))


@pytest.mark.parametrize("name", ["close", "stop"])
def test_the_end_of_a_coordinator_is_its_shutdown(coordinator, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': write coordinator\\.shutdown\\(\\)$"):
        getattr(coordinator, name)
    assert name not in dir(coordinator)


def test_an_error_of_an_earlier_function_is_marked_as_such(coordinator):
    coordinator.schedule(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError) as caught:
        coordinator.join()
    assert any("a function scheduled earlier, on /job:worker/task:" in note for note in caught.value.__notes__)


def test_a_coordinator_and_its_datasets_have_a_repr(coordinator):
    dataset = coordinator.create_per_worker_dataset(lambda: ringlet.data.Dataset.range(3))
    for value in (coordinator, dataset):
        assert repr(value).startswith(f"<{type(value).__name__} of ParameterServerStrategy(")


def test_the_number_of_replicas_is_that_of_replicas_in_sync():
    strategy = ringlet.MirroredStrategy(2)
    with pytest.raises(AttributeError, match=r"'MirroredStrategy' object .*: write strategy\.num_replicas_in_sync$"):
        print(strategy.num_replicas)
    assert "num_replicas" not in dir(strategy)


@pytest.mark.parametrize("mistake", [lambda g: g.__imul__(0.5), lambda g: g.__setitem__(0, 0.0)])
def test_a_write_to_a_result_that_replicas_share_is_answered_with_an_assignment(mistake):
    strategy = ringlet.MirroredStrategy(2)
    with pytest.raises(ValueError, match="is read-only") as caught:
        strategy.run(lambda: mistake(ringlet.replica_context().all_reduce("SUM", np.ones(2))))
    assert "if replicas share this array, write g = g * 0.5, not g *= 0.5, or copy it" in caught.value.__notes__


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        (
            lambda: ringlet.MirroredStrategy(num_replicas=2),
            "MirroredStrategy(2), or MirroredStrategy(['CPU:0', 'CPU:1'])",
        ),
        (lambda: ringlet.MirroredStrategy("CPU:0, CPU:1"), "write ['CPU:0', 'CPU:1']"),
        (lambda: ringlet.MirroredStrategy(2).run(np.add, 1.0), "write args=(value,)"),
        (lambda: ringlet.MirroredStrategy(2).run(np.add, 1.0, 2.0), "write args=(first, second)"),
        (
            lambda: tf.distribute.OneDeviceStrategy("CPU:0").reduce("SUM", 1.0),
            "OneDeviceStrategy.reduce() missing 1 required positional argument: 'axis': got ('SUM', float). "
            "Write strategy.reduce('SUM', value, axis=None)",
        ),
    ],
)
def test_an_error_of_a_strategy_gives_the_line_to_write(mistake, remedy):
    with pytest.raises((TypeError, ValueError), match=re.escape(remedy)):
        mistake()


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("from ringlet import Mesh", "cannot import name 'Mesh' from 'ringlet': write ringlet.sharding.Mesh"),
        ("from ringlet import MirroredStratgy", "write ringlet.MirroredStrategy"),
        ("from ringlet.sharding import make_mesh", "write Mesh({'x': 4, 'y': 2})"),
        ("from ringlet.tpu import Topolgy", "write ringlet.tpu.Topology"),
        ("from ringlet import starmap", "write ringlet.map(fn, *arrays)"),
        ("from ringlet import Pool", "write ringlet.map(fn, *arrays)"),
    ],
)
def test_an_import_of_an_absent_name_gives_the_name_to_import(line, remedy):
    with pytest.raises(ImportError, match=re.escape(remedy)):
        exec(line)
