"""TensorFlow's names, for programs that use ``tf.distribute``.

Replace ``import tensorflow as tf`` by ``from ringlet.compat import tf``. ``docs/porting.md`` lists which names are the
same, different or absent. The error for an absent name states the replacement, if there is one.

Examples
--------
>>> from ringlet.compat import tf
>>> strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
>>> @tf.function
... def run(input):
...     return strategy.run(lambda x: x * 2.0, args=(input,))
>>> run(tf.constant(3.0))
PerReplica:{
  0: <tf.Tensor: shape=(), dtype=float32, numpy=6.0>,
  1: <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
}
"""

from __future__ import annotations

from typing import Any

from ringlet.compat.tensorflow.absent import absent_error, namespace
from ringlet.compat.tensorflow.array_functions import array_functions
from ringlet.compat.tensorflow.basics import (
    cast,
    constant,
    convert_to_tensor,
    device,
    executing_eagerly,
    identity,
    is_tensor,
    print,
    range,
)
from ringlet.compat.tensorflow.dtypes import DTYPES, DType, as_dtype
from ringlet.compat.tensorflow.function import function
from ringlet.compat.tensorflow.losses import LOSSES
from ringlet.compat.tensorflow.metrics import METRICS
from ringlet.compat.tensorflow.random_functions import RANDOM_FUNCTIONS
from ringlet.compat.tensorflow.spec import TensorSpec
from ringlet.compat.tensorflow.tensor import Tensor
from ringlet.compat.tensorflow.variable import Variable
from ringlet.compat.tensorflow.variable_creators import variable_creator_scope
from ringlet.compat.tf import config, data, distribute, dtypes, errors, io, nest, nn, tpu, train
from ringlet.compat.tf.distribute import compat, types
from ringlet.data import NoneTensorSpec, OptionalSpec
from ringlet.values import IndexedSlices, VariableAggregation, VariableSynchronization

__all__ = [
    "DType",
    "IndexedSlices",
    "NoneTensorSpec",
    "OptionalSpec",
    "Tensor",
    "TensorSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "as_dtype",
    "cast",
    "compat",
    "config",
    "constant",
    "convert_to_tensor",
    "data",
    "device",
    "distribute",
    "dtypes",
    "errors",
    "executing_eagerly",
    "experimental",
    "function",
    "identity",
    "io",
    "is_tensor",
    "nest",
    "newaxis",
    "nn",
    "print",
    "range",
    "tpu",
    "train",
    "types",
    "variable_creator_scope",
]
_FUNCTIONS = array_functions("tf")
_KERAS = {
    "losses": namespace("tf.losses", "Losses of labels and predictions.", LOSSES),
    "metrics": namespace("tf.metrics", "Metrics.", METRICS),
}
_NAMESPACES = {
    **_KERAS,
    "keras": namespace("tf.keras", "Losses and metrics, under their other names.", _KERAS),
    "linalg": namespace("tf.linalg", "Linear algebra.", array_functions("tf.linalg")),
    "math": namespace("tf.math", "Arithmetic.", array_functions("tf.math")),
    "random": namespace("tf.random", "Random numbers of NumPy.", RANDOM_FUNCTIONS),
}
__all__ += list(DTYPES) + list(_FUNCTIONS) + list(_NAMESPACES)
globals().update(_FUNCTIONS, **_NAMESPACES)

# The TensorFlow version that this namespace follows in names and behaviour.
__version__ = "2.21.0"
newaxis = None

experimental = namespace("tf.experimental", "Experimental names of tf.", {"Optional": data.experimental.Optional})


def __getattr__(name: str) -> Any:
    if name in DTYPES:
        return as_dtype(DTYPES[name])
    raise absent_error(f"tf.{name}", __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
