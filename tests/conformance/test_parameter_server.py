"""Partitioners, sharded variables and where variables go answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_ps.py, on real worker and parameter servers. Those of the group
``coordinator`` are compared in test_coordinator.py.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.experimental import partitioners
from ringlet.values import ShardedVariable
from tests.conformance.common import assert_same, assert_same_error, case_id, decode, is_incidental, load

CASES = [case for case in load("parameter_server") if case["group"] != "coordinator"]

Given = dict[str, Any]

# What TensorFlow calls a variable on a parameter server.
CLASSES = {"TableVariable": "CachingVariable"}

NAMED = {
    "fixed(3)": partitioners.FixedShardsPartitioner(3),
    "min(1, 4)": partitioners.MinSizePartitioner(1, 4),
    "max(64)": partitioners.MaxSizePartitioner(64),
    "none": None,
    "fixed2": partitioners.FixedShardsPartitioner(2),
    "fixed3": partitioners.FixedShardsPartitioner(3),
    "min": partitioners.MinSizePartitioner(8, 4),
    "max": partitioners.MaxSizePartitioner(16),
}

INDICES = {
    "0": np.s_[0], "-1": np.s_[-1], "3": np.s_[3], "99": np.s_[99], "-99": np.s_[-99], "1:4": np.s_[1:4],
    ":": np.s_[:], "::2": np.s_[::2], "::-1": np.s_[::-1], "5:1:-2": np.s_[5:1:-2], "-3:": np.s_[-3:],
    "4:2": np.s_[4:2], "1:4,0": np.s_[1:4, 0], "2,1": np.s_[2, 1], "...,1": np.s_[..., 1], "::0": np.s_[::0],
    "None": np.s_[None], "100:": np.s_[100:], "2:100:3": np.s_[2:100:3], ":,::-1": np.s_[:, ::-1], "...": np.s_[...],
}  # fmt: skip

# --- what cases ask for ----------------------------------------------------------------------------------------------


def cut(partitioner: Any, given: Given, **kwargs: Any) -> list[int]:
    return list(partitioner(tuple(given["shape"]), tf.as_dtype(given["dtype"]), **kwargs))


def without(given: Given, *names: str) -> Given:
    return {key: value for key, value in given.items() if key not in names}


def sized(name: str) -> Callable[[Given], Any]:
    return lambda given: cut(getattr(partitioners, name)(**without(given, "shape", "dtype", "class")), given)


def misuse_of_partitioners(given: Given) -> Any:
    partitioner = getattr(partitioners, given["class"])(**given["kwargs"])
    return partitioner((4, 4), "float32")


def sharded(given: Given) -> ShardedVariable:
    sizes, columns = given["shard_rows"], given["cols"]
    whole = np.arange(sum(sizes) * columns, dtype=np.float32).reshape(-1, columns)
    return ShardedVariable([ringlet.Variable(part) for part in np.split(whole, np.cumsum(sizes)[:-1])])


def updated(do: str) -> Callable[[Given], Any]:
    def update(given: Given) -> Any:
        variable = sharded(given)
        getattr(variable, do)(decode(given["value"]))
        return [shard.numpy() for shard in variable.variables]

    return update


def scattered(given: Given) -> Any:
    variable = sharded(given)
    getattr(variable, given["do"])(ringlet.IndexedSlices(np.float32(given["values"]), given["indices"]))
    return [shard.numpy() for shard in variable.variables]


def properties(given: Given) -> Any:
    variable = sharded(given)
    return {
        "shape": list(variable.shape),
        "dtype": variable.dtype.name,
        "offsets": variable._var_offsets,
        "n": len(variable.variables),
        "convert": np.asarray(variable),
    }


def misuse_of_sharded(given: Given) -> Any:
    float32, int32 = np.float32, np.int32
    variables: Any = {
        "empty": lambda: [],
        "not variables": lambda: [1, 2],
        "dtypes differ": lambda: [ringlet.Variable(float32([1])), ringlet.Variable(int32([1]))],
        "shapes differ": lambda: [ringlet.Variable(float32([[1]])), ringlet.Variable(float32([[1, 2]]))],
    }[given["case"]]()
    return ShardedVariable(variables).shape


@functools.cache
def cluster(workers: int, ps: int) -> Any:
    return ringlet.cluster_resolver.LocalClusterResolver(workers, ps)


@pytest.fixture(scope="module", autouse=True)
def _ended() -> Iterator[None]:
    yield
    for case in CASES:
        if case["group"] == "ps/placement":
            cluster(**_sizes(case["input"])).stop()


def _sizes(given: Given) -> dict[str, int]:
    return {"workers": given["cluster"]["worker"], "ps": given["cluster"]["ps"]}


def placement(given: Given) -> Any:
    strategy = tf.distribute.ParameterServerStrategy(cluster(**_sizes(given)), NAMED[given["partitioner"]])
    beginnings: list[tuple[Any, Given]] = [
        (1.0, {}),
        ([1.0, 2.0, 3.0], {}),
        (np.zeros((7, 2)), {}),
        (np.arange(4), {}),
        ([5.0], {}),
        (np.ones((3, 3), np.float32), {"name": "w"}),
        (lambda: tf.constant(1.0, shape=[5, 2]), {}),
    ]
    with strategy.scope():
        variables = [tf.Variable(value, **options) for value, options in beginnings]
        # Text of a fixed length, which ringlet's variables hold, and those of tf do not.
        return [described(variable) for variable in [*variables, ringlet.Variable("text")]]


def described(variable: Any) -> Given:
    name = type(variable).__name__
    return {
        "class": CLASSES.get(name, name),
        "shape": list(variable.shape),
        "dtype": "string" if variable.dtype.kind == "U" else variable.dtype.name,
        "shards": [
            [shard.name, list(shard.shape), shard.device.replace("/replica:0", "")]
            for shard in getattr(variable, "variables", [variable])
        ],
    }


RUNNERS: dict[str, Callable[[Given], Any]] = {
    "partitioners/fixed": sized("FixedShardsPartitioner"),
    "partitioners/min_size": sized("MinSizePartitioner"),
    "partitioners/max_size": sized("MaxSizePartitioner"),
    "partitioners/axis": lambda given: cut(NAMED[given["partitioner"]], given, axis=given["axis"]),
    "partitioners/misuse": misuse_of_partitioners,
    "sharded/getitem": lambda given: sharded(given)[INDICES[given["index"]]],
    "sharded/assign": updated("assign"),
    "sharded/assign_add": updated("assign_add"),
    "sharded/assign_sub": updated("assign_sub"),
    "sharded/scatter": scattered,
    "sharded/properties": properties,
    "sharded/misuse": misuse_of_sharded,
    "ps/placement": placement,
}

# --- comparing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    run, expected = RUNNERS[case["group"]], case["expect"]
    if "ok" in expected:
        assert_same(expected["ok"], run(case["input"]))
        return
    try:
        found = run(case["input"])
    except Exception as error:
        assert_same_error(expected["error"], error)
    else:
        assert is_incidental(expected), f"no error, but {found!r}, where TensorFlow raised"


def test_cases_are_counted(capsys):
    counts = collections.Counter(case["group"].partition("/")[0] for case in CASES)
    accidents = sum(is_incidental(case["expect"]) for case in CASES)
    with capsys.disabled():
        print(
            f"\nrecorded cases of parameter servers: {len(CASES)} of {len(CASES)} compared {dict(counts)}; {accidents} "
            "are incidental errors, for which anything will do"
        )
    assert CASES
