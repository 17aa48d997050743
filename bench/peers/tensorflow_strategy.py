"""Overhead of TensorFlow's MirroredStrategy, over logical CPU devices of one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Peer, begin, serve

# As many as the questions of ringlet have, whose names are the same.
_LEAVES = 100

# What a variable holds after an assignment, by the number of replicas.
_ASSIGNED = {
    "variable, assign": lambda count: [2.5],
    "variable, assign in a replica": lambda count: [count * (count - 1) / 2],
}


class TensorFlowStrategy(Peer):
    """All replicas. ``eager`` calls uncompiled functions, ``function`` calls one ``tf.function``."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        (
            "run, no-op", "run, all_reduce of a float", f"run, all_reduce of {_LEAVES} leaves", "reduce of a scalar",
            "variable, read", "variable, assign", "variable, read in a replica", "variable, assign in a replica",
        ),
        ("eager", "function"),
    )  # fmt: skip

    def __init__(self, tensorflow: Any, num_replicas: int) -> None:
        self._tensorflow = tensorflow
        self.num_ranks = num_replicas
        self.version = f"tensorflow {tensorflow.__version__}"
        host = tensorflow.config.list_physical_devices("CPU")[0]
        one = tensorflow.config.LogicalDeviceConfiguration()
        tensorflow.config.set_logical_device_configuration(host, [one] * num_replicas)
        self._strategy = tensorflow.distribute.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])
        self._identity = self._strategy.experimental_distribute_values_from_function(
            lambda context: tensorflow.constant(context.replica_id_in_sync_group, tensorflow.float32)
        )
        self._leaves = self._strategy.experimental_distribute_values_from_function(
            lambda context: [tensorflow.constant(np.full(1000, i, np.float32)) for i in range(_LEAVES)]
        )
        with self._strategy.scope():
            self._variable = tensorflow.Variable(1.5, aggregation=tensorflow.VariableAggregation.SUM)
        self._calls = self._all_calls()
        self._compiled = {name: tensorflow.function(call) for name, call in self._calls.items()}
        self._result: Any = None

    def _all_calls(self) -> dict[str, Callable[[], Any]]:
        strategy, variable, get = self._strategy, self._variable, self._tensorflow.distribute.get_replica_context
        value = self._tensorflow.constant(2.5)

        def combine(x: Any) -> Any:
            return get().all_reduce("SUM", x)

        def assign(x: Any) -> None:
            variable.assign(x)

        def in_scope(call: Callable[[], Any]) -> Callable[[], Any]:
            def scoped() -> Any:
                with strategy.scope():
                    return call()

            return scoped

        return {
            "run, no-op": lambda: strategy.run(lambda: None),
            "run, all_reduce of a float": lambda: strategy.run(combine, args=(self._identity,)),
            f"run, all_reduce of {_LEAVES} leaves": lambda: strategy.run(combine, args=(self._leaves,)),
            "reduce of a scalar": lambda: strategy.reduce("SUM", self._identity, axis=None),
            "variable, read": in_scope(variable.read_value),
            "variable, assign": in_scope(lambda: assign(value)),
            "variable, read in a replica": lambda: strategy.run(variable.read_value),
            "variable, assign in a replica": lambda: strategy.run(assign, args=(self._identity,)),
        }

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Do nothing: the values of these questions are few and permanent."""

    def fill(self) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        function = (self._compiled if variant == "function" else self._calls)[collective]

        def one_call() -> None:
            self._result = function()

        return one_call

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result of every replica, or the only one, with the expected result."""
        count = self.num_ranks
        total = count * (count - 1) / 2
        local = self._strategy.experimental_local_results
        if collective.startswith("variable"):
            expected = _ASSIGNED.get(collective, lambda _: [])(count)
            given = [float(self._variable.numpy())]
        elif collective.endswith("leaves"):
            expected = [float(i * count) for i in range(_LEAVES)]
            given = [float(local(leaf)[0].numpy()[0]) for leaf in self._result]
        else:
            expected = {"run, no-op": [None], "reduce of a scalar": [total]}.get(collective, [total] * count)
            given = [None if part is None else float(part.numpy()) for part in local(self._result)]
        return None if given == expected or not expected else f"{collective} gave {given}, expected {expected}"


def main() -> None:
    """Answer questions as all replicas."""
    options = begin()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow

    serve(TensorFlowStrategy(tensorflow, options.ranks), options)


if __name__ == "__main__":
    main()
