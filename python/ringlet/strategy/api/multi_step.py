"""Several steps in one call, as TensorFlow 1 has them: their context, and the loop over an iterator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet import context
from ringlet.strategy.api.reduce_semantics import parse_reduce_op
from ringlet.values import PerReplica, regroup

if TYPE_CHECKING:
    from ringlet.collectives import ReduceOp
    from ringlet.strategy.api.extended import StrategyExtended

__all__ = ["MultiStepContext", "run_steps"]


class MultiStepContext:
    """What steps that run in one call leave behind: the outputs of the last one, by name.

    The step function is given one by ``extended.experimental_run_steps_on_iterator``, which gives it back at the end.

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
        """The outputs of the last step by name, combined where an operation was named for them."""
        return self._last_step_outputs

    @property
    def non_tensor_outputs(self) -> dict[str, Any]:
        """What was kept as it is, by name."""
        return self._non_tensor_outputs

    @property
    def run_op(self) -> None:
        """Nothing: in TensorFlow, the node of a graph that runs the steps, which have been run here."""
        return None

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Name an output of this step, which the next step overwrites.

        Parameters
        ----------
        name : str
        output : nested structure
            Of a step function, a distributed value; of a replica, its own value.
        reduce_op : ReduceOp or str, optional
            How the replicas' values are combined. A replica has to name one.

        Raises
        ------
        ValueError
            If a replica names no operation, or the operation is unknown.

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
        replica = _current_replica()
        if replica is None:
            self._set_output(_current_strategy(), name, output, op)
            return
        if op is None:
            raise ValueError(
                f"set_last_step_output({name!r}, ...) was called by a replica without a reduce_op: all replicas have a "
                "value for one name. Write reduce_op=ReduceOp.SUM or MEAN, or call it outside of the replicas"
            )
        replica.merge_call(lambda strategy, value: self._set_output(strategy, name, value, op), args=(output,))

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Name something that is kept as it is; of replicas, a tuple with the value of each.

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
        replica = _current_replica()
        if replica is None:
            self._non_tensor_outputs[name] = output
            return

        def keep(strategy: Any, value: Any) -> None:
            self._non_tensor_outputs[name] = strategy.experimental_local_results(value)

        replica.merge_call(keep, args=(output,))

    def _set_output(self, strategy: Any, name: str, output: Any, op: ReduceOp | None) -> None:
        self._reduce_ops[name] = op
        self._last_step_outputs[name] = output if op is None else strategy.reduce(op, output, axis=None)

    def _finish(self, extended: StrategyExtended, always_wrap: bool) -> None:
        """Give outputs that were not combined as one value for each replica."""
        for name, op in self._reduce_ops.items():
            if op is None:
                results = extended._local_results(self._last_step_outputs[name])
                self._last_step_outputs[name] = regroup(results, PerReplica, always_wrap=always_wrap)


def _current_replica() -> Any:
    """The context of the replica that runs here; None outside of replicas."""
    mode = context.current()
    return None if mode is None or mode.is_cross_replica else mode


def _current_strategy() -> Any:
    from ringlet.strategy.api.current_strategy import get_strategy  # which needs the strategies

    return get_strategy()


def run_steps(
    extended: StrategyExtended,
    fn: Callable[[MultiStepContext, Any], Any],
    iterator: Any,
    iterations: int,
    always_wrap: bool = False,
) -> MultiStepContext:
    """Call a function with the next elements of an iterator, one after the other.

    Parameters
    ----------
    extended : StrategyExtended
    fn : callable
        Takes the context and an element, in cross-replica context.
    iterator : object with ``get_next``
    iterations : int
    always_wrap : bool
        Whether an output that was not combined is a PerReplica in any case.

    Returns
    -------
    MultiStepContext

    Raises
    ------
    TypeError
        If `iterations` is no whole number.
    OutOfRangeError
        If there are fewer elements.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
    >>> iterator = strategy.make_dataset_iterator(ringlet.data.Dataset.range(6).batch(2))
    >>> steps = run_steps(strategy.extended, lambda c, x: c.set_last_step_output("x", x), iterator, 2)
    >>> steps.last_step_outputs
    {'x': array([2, 3])}
    """
    if not isinstance(iterations, (int, np.integer)):
        raise TypeError(
            f"iterations is a number of steps, got {iterations!r} of type {type(iterations).__name__}: write a whole "
            "number, such as 1"
        )
    steps = MultiStepContext()
    with extended._container_strategy().scope():
        for _ in range(iterations):
            fn(steps, iterator.get_next())
    steps._finish(extended, always_wrap)
    return steps
