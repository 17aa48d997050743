from __future__ import annotations

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions

from ringlet.errors import GatherError, GatherWarning
from ringlet.sharding import ShardedArray, Sharding, explain, shard, strict
from ringlet.sharding.execution.array_function_table import (
    call_gathered,
    first_given,
    gathered,
    implementations,
    numpy_function,
)

HALVES = Sharding.tiled((2,))


@pytest.fixture
def x():
    return shard(np.array([3.0, 1.0, 2.0, 0.0]), HALVES)


def test_functions_without_a_tiled_form_gather_with_a_warning_and_give_plain_arrays(x):
    with pytest.warns(GatherWarning, match=r"np\.roots"):
        result = np.roots(x)
    assert type(result) is np.ndarray


def test_functions_of_a_sub_module_are_named_with_it():
    with pytest.warns(GatherWarning, match=r"np\.linalg\.eigvals"):
        np.linalg.eigvals(shard(np.eye(4), Sharding.tiled((2, 1))))


def test_strict_refuses_what_would_gather(x):
    with strict(), pytest.raises(GatherError):
        np.roots(x)


def test_an_array_that_every_device_has_is_gathered_for_nothing():
    with strict(), explain() as report:
        assert np.median(shard(np.arange(3.0), Sharding.replicated(2))) == 1
    assert not any(operation.collectives for operation in report.operations)


def test_arrays_are_gathered_at_any_depth_of_arguments(x):
    with pytest.warns(GatherWarning):
        found = gathered("test", {"a": [x, (x, 3)], "b": 4})
    assert type(found["a"][0]) is type(found["a"][1][0]) is np.ndarray
    assert found["b"] == 4


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.filterwarnings("ignore::ringlet.errors.GatherWarning")
def test_what_is_gathered_is_written_to_a_sharded_out(x, by_name):
    out = shard(np.zeros(()), Sharding.replicated(2))
    result = np.nanmedian(x, out=out) if by_name else np.nanmedian(x, None, out)
    assert result is out
    assert float(out) == 1.5


def test_arrays_of_other_kinds_get_their_turn(x):
    class Other:
        def __array_function__(self, function, types, args, kwargs):
            return "theirs"

    assert np.concatenate([x, Other()]) == "theirs"


def test_arrays_of_kinds_that_do_not_know_sharded_ones_are_refused_by_numpy(x):
    class Silent:
        def __array_function__(self, function, types, args, kwargs):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate([x, Silent()])


@pytest.mark.parametrize("create", [lambda like: np.zeros(3, like=like), lambda like: np.array([1, 2], like=like)])
def test_arrays_made_like_a_sharded_one_are_on_its_devices(x, create):
    made = create(x)
    assert isinstance(made, ShardedArray)
    assert str(made.sharding) == "{replicated}"


def test_a_sharded_array_stays_itself_where_it_is_asked_for_as_one(x):
    assert np.asarray(x, like=x) is x
    assert np.array(x, like=x) is not x
    assert np.asarray(x, np.float32, like=x).dtype == np.float32


def test_the_first_argument_may_be_named(x):
    assert np.flip(m=x).shards[0].tolist() == [0.0, 2.0]
    assert first_given(np.flip, lambda m, axis=None: (m, axis))(m=1) == (1, None)


def test_functions_of_later_versions_are_looked_for_by_name():
    assert numpy_function("linalg.norm") is np.linalg.norm
    assert numpy_function("linalg.no_such_function") is None


def test_every_implementation_stands_for_a_function_that_can_be_overridden():
    known = implementations().keys()
    if np.lib.NumpyVersion(np.__version__) < "2.3.0":  # none of numpy.strings can be overridden
        known = {function for function in known if function.__module__ != "numpy.strings"}
    assert known <= get_overridable_numpy_array_functions()


def test_functions_that_are_called_gathered_may_be_anyones(x):
    with pytest.warns(GatherWarning, match="mine"):
        assert call_gathered(lambda a, *, k: a.sum() * k, "mine", (x,), {"k": 2}) == 12


def test_a_function_that_does_not_tell_its_parameters_takes_its_first_one_by_name_too():
    assert first_given(type, lambda array, mask: (array, mask))(a=3, mask=1) == (3, 1)
