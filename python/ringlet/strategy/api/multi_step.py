"""Several steps in one call, as in TensorFlow 1: the context of the steps, and the loop over an iterator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet import context
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op, reduce_components
from ringlet.values import DistributedValues, PerReplica, regroup

if TYPE_CHECKING:
    from ringlet.collectives import ReduceOp
    from ringlet.strategy.api.extended import StrategyExtended


class MultiStepContext:
    """Outputs of the last of several steps, by name.

    ``extended.experimental_run_steps_on_iterator`` passes a context to the step function, and returns it at the end.

    Examples
    --------
    >>> steps = MultiStepContext()
    >>> steps.set_last_step_output("loss", 0.5)
    >>> steps.last_step_outputs
    {'loss': 0.5}
    """

    def __init__(self) -> None:
        self._last_step_outputs: dict[str, Any] = {}
        self._reduce_ops: dict[str, ReduceOp | None] = {}
        self._non_tensor_outputs: dict[str, Any] = {}

    @property
    def last_step_outputs(self) -> dict[str, Any]:
        """The outputs of the last step, by name; outputs set with a reduce op are combined over the replicas."""
        return self._last_step_outputs

    @property
    def non_tensor_outputs(self) -> dict[str, Any]:
        """The values set by :meth:`set_non_tensor_output`, by name."""
        return self._non_tensor_outputs

    @property
    def run_op(self) -> None:
        """None: steps run at once. In TensorFlow 1, this is the graph node that runs the steps."""
        return None

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Set an output of this step; the next step overwrites it.

        Parameters
        ----------
        name : str
        output : nested structure
            A distributed value if called by the step function; the replica's own value if called by a replica.
        reduce_op : ReduceOp or str, optional
            How the replicas' values are combined. Required in a replica.

        Raises
        ------
        ValueError
            If a replica does not pass an operation, or the operation is unknown.

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> steps = MultiStepContext()
        >>> losses = ringlet.values.PerReplica([0.5, 1.5])
        >>> strategy.run(lambda loss: steps.set_last_step_output("loss", loss, "MEAN"), args=(losses,))
        >>> float(steps.last_step_outputs["loss"])
        1.0
        """
        op = None if reduce_op is None else parse_reduce_op(reduce_op)
        mode = context.current()
        if mode is None or mode.is_cross_replica:
            self._set_output(None if mode is None else mode.strategy, name, output, op)
            return
        if op is None:
            raise ValueError(
                f"set_last_step_output({name!r}, ...) was called by a replica without a reduce_op, which combines the "
                "values of all replicas. Write reduce_op=ReduceOp.SUM or MEAN, or call the method outside of the "
                "replicas"
            )
        replica: Any = mode
        replica.merge_call(lambda strategy, value: self._set_output(strategy, name, value, op), args=(output,))

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Store a value unchanged; if replicas call this method, store a tuple of their values.

        Parameters
        ----------
        name : str
        output : object

        Examples
        --------
        >>> steps = MultiStepContext()
        >>> steps.set_non_tensor_output("names", ["a", "b"])
        >>> steps.non_tensor_outputs
        {'names': ['a', 'b']}
        """
        replica: Any = context.current()
        if replica is None or replica.is_cross_replica:
            self._non_tensor_outputs[name] = output
            return

        def keep(strategy: Any, value: Any) -> None:
            self._non_tensor_outputs[name] = strategy.experimental_local_results(value)

        replica.merge_call(keep, args=(output,))

    def _set_output(self, strategy: Any, name: str, output: Any, op: ReduceOp | None) -> None:
        self._reduce_ops[name] = op
        if op is not None and strategy is not None:
            output = strategy.reduce(op, output, axis=None)
        elif op is not None and isinstance(output, DistributedValues):  # the only replica's output is bare
            output = reduce_components(op, output, 1)
        self._last_step_outputs[name] = output

    def _finish(self, extended: StrategyExtended, always_wrap: bool) -> None:
        """Regroup the components of each output that has no reduce op; with `always_wrap`, into a PerReplica."""
        for name, op in self._reduce_ops.items():
            if op is None:
                results = extended._local_results(self._last_step_outputs[name])
                self._last_step_outputs[name] = regroup(results, PerReplica, always_wrap=always_wrap)


def run_steps(
    extended: StrategyExtended,
    fn: Callable[[MultiStepContext, Any], Any],
    iterator: Any,
    iterations: int,
    always_wrap: bool = False,
) -> MultiStepContext:
    """Call a function `iterations` times, with the context and the next element of an iterator.

    With `always_wrap`, an output that has no reduce op is always a PerReplica.
    """
    if not isinstance(iterations, (int, np.integer)):
        raise TypeError(
            f"iterations must be a number of steps, got {iterations!r} of type {type(iterations).__name__}: write an "
            "integer, such as 1"
        )
    steps = MultiStepContext()
    with extended._container_strategy().scope():
        for _ in range(iterations):
            fn(steps, iterator.get_next())
    steps._finish(extended, always_wrap)
    return steps
