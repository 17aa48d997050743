"""Creators see, change and replace variables as TensorFlow's do."""

from __future__ import annotations

import threading

import pytest

from ringlet.compat import tf

DEVICES = ["CPU:0", "CPU:1"]


def recorder(calls, mark="A"):
    def creator(next_creator, **kwargs):
        calls.append(mark)
        made = next_creator(**kwargs)
        calls.append(type(made).__name__)
        return made

    return creator


def test_a_creator_sees_the_arguments_of_the_program():
    seen = []

    def creator(next_creator, **kwargs):
        seen.append(kwargs)
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator) as entered:
        tf.Variable(1.0, name="q")
    assert entered is None
    assert seen == [
        {
            "initial_value": 1.0,
            "trainable": None,
            "validate_shape": True,
            "caching_device": None,
            "name": "q",
            "variable_def": None,
            "dtype": None,
            "import_scope": None,
            "constraint": None,
            "synchronization": tf.VariableSynchronization.AUTO,
            "aggregation": tf.VariableAggregation.NONE,
            "shape": None,
            "experimental_enable_variable_lifting": None,
        }
    ]


def test_a_creator_changes_arguments_and_may_leave_some_out_or_add_some():
    with tf.variable_creator_scope(lambda create, **_: create(initial_value=2, foo=3)):
        v = tf.Variable(1.0, name="q")
    assert (v.name, v.dtype, v.numpy()) == ("Variable:0", tf.int32, 2)


def test_what_a_creator_returns_is_the_variable():
    with tf.variable_creator_scope(lambda create, **kwargs: 5):
        assert tf.Variable(1.0) == 5


def test_the_innermost_creator_is_called_first_until_its_scope_ends():
    calls = []
    with tf.variable_creator_scope(recorder(calls, "A")):
        with tf.variable_creator_scope(recorder(calls, "B")):
            tf.Variable(1.0)
        assert calls == ["B", "A", "Variable", "Variable"]
        calls.clear()
        tf.Variable(1.0)
        assert calls == ["A", "Variable"]
    tf.Variable(1.0)
    assert calls == ["A", "Variable"]


def test_threads_of_the_program_do_not_inherit_creators():
    calls = []
    with tf.variable_creator_scope(recorder(calls)):
        thread = threading.Thread(target=lambda: tf.Variable(1.0))
        thread.start()
        thread.join()
    assert calls == []


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_creator_gets_the_variable_of_the_strategy(is_inside):
    calls, strategy = [], tf.distribute.MirroredStrategy(DEVICES)
    scopes = [strategy.scope(), tf.variable_creator_scope(recorder(calls))]
    first, second = scopes if is_inside else scopes[::-1]
    with first, second:
        v = tf.Variable(1.0)
    assert calls == ["A", "MirroredVariable"]
    assert type(v).__name__ == "MirroredVariable"


def test_replicas_call_a_creator_from_outside_together():
    calls, strategy = [], tf.distribute.MirroredStrategy(DEVICES)
    with strategy.scope(), tf.variable_creator_scope(recorder(calls)):
        v = strategy.run(lambda: tf.Variable(1.0, name="foo"))
    assert calls == ["A", "MirroredVariable"]
    assert [part.name for part in v.values] == ["foo:0", "foo/replica_1:0"]


def test_each_replica_calls_its_own_creator():
    calls, strategy = [], tf.distribute.MirroredStrategy(DEVICES)

    def step():
        with tf.variable_creator_scope(recorder(calls)):
            return tf.Variable(1.0, name="foo")

    assert type(strategy.run(step)).__name__ == "MirroredVariable"
    assert sorted(calls) == ["A", "A", "MirroredVariable", "MirroredVariable"]


def test_errors_of_creators_reach_the_program():
    with tf.variable_creator_scope(3), pytest.raises(TypeError, match="not callable"):
        tf.Variable(1.0)
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    with tf.variable_creator_scope(3), pytest.raises(TypeError, match="not callable"):
        strategy.run(lambda: tf.Variable(1.0))
