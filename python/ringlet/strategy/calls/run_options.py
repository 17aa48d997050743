"""RunOptions: the options of ``strategy.run``."""

from __future__ import annotations

from typing import Any, NamedTuple


class _TensorFlowFields(NamedTuple):
    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class RunOptions(_TensorFlowFields):
    """Options of ``strategy.run`` (``tf.distribute.RunOptions``), a named tuple with three fields.

    Parameters
    ----------
    experimental_enable_dynamic_batch_size, experimental_bucketizing_dynamic_shape, experimental_xla_options
        TensorFlow's fields, accepted for compatibility; without effect.
    writable_results : bool
        Whether ``all_reduce`` returns separate, writable arrays to each replica. Otherwise replicas share one
        read-only result, which is faster. Not a field of the tuple.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> def step():
    ...     total = ringlet.replica_context().all_reduce("SUM", np.ones(2))
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
        """Create options; `writable_results` is keyword-only."""
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
        return is_same_kind and tuple(self) == tuple(other)  # type: ignore[arg-type]  # an instance of this class

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.writable_results))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, writable_results={self.writable_results})"


# Options of a run in which helper threads execute all replicas, if there are several. In helper threads, the memory of
# large temporary arrays stays with the process longer than in the main thread, where glibc returns it more often.
HELPERS_ONLY = RunOptions()


def has_writable_results(options: Any) -> bool:
    """Return whether the options of a run, an object of any type as in TensorFlow, request writable results."""
    return bool(getattr(options, "writable_results", False))
