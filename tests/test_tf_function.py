"""``ringlet.function`` accepts what ``tf.function`` accepts, and runs eagerly."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import ringlet
from ringlet.tf_function import Function

# What TensorFlow 2.21's tf.function takes, in its order.
PARAMETERS = [
    "func",
    "input_signature",
    "autograph",
    "jit_compile",
    "reduce_retracing",
    "experimental_implements",
    "experimental_autograph_options",
    "experimental_attributes",
    "experimental_relax_shapes",
    "experimental_compile",
    "experimental_follow_type_hints",
]


def test_it_takes_the_parameters_of_tf_function():
    assert list(inspect.signature(ringlet.function).parameters) == PARAMETERS


def test_every_call_runs_the_function():
    calls = []

    @ringlet.function
    def step(x):
        calls.append(x)
        return x + 1

    assert [step(1), step(1)] == [2, 2]
    assert calls == [1, 1]


@pytest.mark.parametrize("arguments", [{}, {"jit_compile": True}, {"input_signature": [3], "autograph": False}])
def test_with_arguments_it_is_a_decorator(arguments):
    @ringlet.function(**arguments)
    def double(x):
        """Twice."""
        return 2 * x

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice.")
    assert double.input_signature == arguments.get("input_signature")
    assert double.python_function(4) == 8
    assert list(inspect.signature(double).parameters) == ["x"]


def test_a_method_is_bound_to_its_object():
    class Model:
        scale = 3

        @ringlet.function
        def scaled(self, x):
            return self.scale * x

        @ringlet.function(jit_compile=True)
        def __call__(self, x):
            return self.scaled(x)

    assert Model()(2) == 6
    assert Model().scaled(x=2) == 6
    assert isinstance(Model.scaled, Function)


def test_it_marks_any_callable():
    assert ringlet.function(functools.partial(pow, 2))(5) == 32
    assert ringlet.function(np.add)(1, 2) == 3


def test_a_marked_step_runs_on_replicas():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])

    @ringlet.function
    def step(x):
        return ringlet.get_replica_context().all_reduce("SUM", x)

    for result in strategy.run(step, args=(np.ones(2),)).values:
        assert result.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "name", ["get_concrete_function", "experimental_get_compiler_ir", "pretty_printed_concrete_signatures"]
)
def test_what_needs_a_graph_is_refused_with_what_to_do_instead(name):
    step = ringlet.function(abs)
    with pytest.raises(NotImplementedError, match=rf"{name} .*run eagerly.*[Ii]nstead"):
        getattr(step, name)()
    assert step.experimental_get_tracing_count() == 0


def test_what_cannot_be_a_step_is_refused():
    async def step():
        pass

    with pytest.raises(TypeError, match="async"):
        ringlet.function(step)
    with pytest.raises(TypeError, match="got 5 of type int"):
        ringlet.function(5)
