"""What a run may be asked for: ``tf.distribute.RunOptions``, and what is ours."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["RunOptions", "has_writable_results"]


class _Recorded(NamedTuple):
    """The fields that TensorFlow has."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class RunOptions(_Recorded):
    """How a step is to be run (``tf.distribute.RunOptions``), a named tuple with three fields.

    Parameters
    ----------
    experimental_enable_dynamic_batch_size, experimental_bucketizing_dynamic_shape, experimental_xla_options
        The fields, kept for TensorFlow's sake: they speak to a compiler that is not here.
    writable_results : bool
        Whether ``all_reduce`` gives every replica arrays of its own, which it may write to. Otherwise replicas share
        one read-only result, which costs less. No field of the tuple.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> def step():
    ...     total = ringlet.get_replica_context().all_reduce("SUM", np.ones(2))
    ...     total *= 0.5
    ...     return total
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(step, options=RunOptions(writable_results=True)).values
    (array([1., 1.]), array([1., 1.]))
    """

    writable_results: bool

    def __new__(
        cls,
        experimental_enable_dynamic_batch_size: bool = True,
        experimental_bucketizing_dynamic_shape: bool = False,
        experimental_xla_options: Any = None,
        *,
        writable_results: bool = False,
    ) -> RunOptions:
        """Make options; `writable_results` only by its name."""
        options = super().__new__(
            cls,
            experimental_enable_dynamic_batch_size,
            experimental_bucketizing_dynamic_shape,
            experimental_xla_options,
        )
        options.writable_results = bool(writable_results)
        return options

    def _replace(self, **changes: Any) -> RunOptions:
        given = {**self._asdict(), "writable_results": self.writable_results, **changes}
        return type(self)(**given)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(self), {"writable_results": self.writable_results}

    def __eq__(self, other: object) -> bool:
        is_same_kind = isinstance(other, RunOptions) and other.writable_results == self.writable_results
        return is_same_kind and tuple(self) == tuple(other)  # type: ignore[arg-type]  # a tuple, as was just found

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.writable_results))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, writable_results={self.writable_results})"


def has_writable_results(options: Any) -> bool:
    """Tell whether options of a run ask for arrays that replicas may write to.

    Parameters
    ----------
    options : RunOptions or object
        TensorFlow takes anything.

    Examples
    --------
    >>> has_writable_results(None)
    False
    """
    return bool(getattr(options, "writable_results", False))
