"""Methods that TensorFlow calls experimental, under their plain names."""

from __future__ import annotations

import inspect

import ringlet
from ringlet.compat import tf
from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerExtended
from ringlet.strategy.tpu.tpu_extended import TPUExtended
from ringlet.tf_function import Function
from tests.test_docstrings import public_names

CLASSES = [
    *(value for _, value in public_names() if inspect.isclass(value)),
    *(value for value in vars(tf.distribute).values() if inspect.isclass(value)),
    ParameterServerExtended,
    TPUExtended,
    Function,
]
# Their plain names are other methods.
OTHERS = {"experimental_run", "experimental_distribute_datasets_from_function"}


def test_every_experimental_method_has_a_plain_name():
    methods = [
        (owner, name)
        for owner in CLASSES
        for name in dir(owner)
        if name.startswith("experimental_") and name not in OTHERS
        if callable(getattr(owner, name)) or isinstance(getattr(owner, name), property)
    ]
    assert methods
    assert [(o.__name__, name) for o, name in methods if _plain(o, name) is not getattr(o, name)] == []


def _plain(owner, name):
    return getattr(owner, name.removeprefix("experimental_"), None)


def test_a_method_that_a_program_overrides_is_overridden_under_both_names():
    class Mine(ringlet.MirroredStrategy):
        def experimental_local_results(self, value):
            return "mine"

    assert Mine(2).local_results(None) == Mine(2).experimental_local_results(None) == "mine"


def test_a_plain_name_that_is_another_method_stays():
    class Mine(ringlet.MirroredStrategy):
        def experimental_run(self, fn, input_iterator=None):
            return "experimental"

    assert Mine(2).run(lambda: 5) == 5
