"""Functions are pickled once, arguments every time."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import ringlet
from ringlet.coordinator import protocol
from ringlet.coordinator.argument_codec import Functions, SentFunction, pack_arguments, pack_value
from ringlet.ipc import unpack
from ringlet.ipc.pickle_codec import Unsendable


class Model:
    def __init__(self):
        self.pickled = 0

    def step(self):
        return 1

    @ringlet.function
    def marked(self):
        return 2

    def __reduce__(self):
        self.pickled += 1
        return Model, ()


def test_a_function_is_pickled_when_it_is_sent_first():
    functions = Functions()

    def step():
        return 1

    assert functions(step) is functions(step)
    assert functions(step) is not functions(lambda: 1)
    assert functions(step).name.endswith("step")


def test_methods_of_one_object_are_pickled_once_each():
    functions, model = Functions(), Model()
    assert functions(model.step) is functions(model.step)
    assert functions(model.marked) is functions(model.marked)
    assert functions(model.marked) is not functions(model.step)
    assert model.pickled == 2
    assert functions(Model().step) is not functions(model.step)


def test_functions_that_are_gone_are_forgotten():
    functions = Functions()
    for _ in range(10):
        functions(lambda: 1)
    gc.collect()
    assert not functions._known


def test_another_function_is_not_taken_for_one_that_is_gone_and_was_not_forgotten():
    functions = Functions()
    gone, other = functions(lambda: 1), lambda: 2
    functions(other)
    (key,) = functions._known
    functions._known[key] = weakref.ref(lambda: 1), gone  # where an interrupt came while it was to be forgotten
    assert functions(other) is not gone


def test_arrays_are_copied_when_they_are_packed():
    x = np.arange(3)
    payload = pack_arguments((x,), {"y": x}, "step")
    x[:] = 7
    (found,), kwargs = unpack(payload.header, payload.buffers)
    assert found.tolist() == [0, 1, 2]
    assert kwargs["y"] is found


def test_no_arguments_are_nothing_to_send():
    assert pack_arguments(None, None, "step") is None
    assert pack_arguments([], {}, "step") is None


def test_a_function_that_slows_down_is_known_to_be_slow_at_once_and_to_be_fast_after_a_while():
    function = SentFunction(pack_value(1), "step", "")
    function.took(0.001)
    function.took(1.0)
    assert function.seconds == 1.0
    function.took(0.0)
    assert function.seconds == pytest.approx(0.8)


def test_marked_functions_of_modules_travel_by_their_names():
    from tests.coordinator import marked

    payload = pack_value(marked.double)
    assert unpack(payload.header, payload.buffers) is marked.double
    assert b"marked" in payload.header
    assert len(payload.header) < 100


def test_too_many_arrays_are_refused_before_anything_is_sent(monkeypatch):
    monkeypatch.setattr(protocol, "_MOST_BUFFERS", 2)
    arrays = [np.zeros(1) for _ in range(3)]
    with pytest.raises(Unsendable, match="argument 1 of step: 3 arrays are too many"):
        pack_arguments((1, arrays), None, "step")


@pytest.mark.parametrize(("args", "kwargs"), [(5, None), (np.array([1, 2]), None), (None, [1])])
def test_arguments_that_are_no_sequence_and_no_mapping_are_named(args, kwargs):
    with pytest.raises(TypeError, match=r"args must be a list or tuple of the arguments of step, as in args=\(5,\)"):
        pack_arguments(args, kwargs, "step")
