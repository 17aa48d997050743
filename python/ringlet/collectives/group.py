"""A group of replica threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ringlet import _core
from ringlet.collectives.argument_parsing import as_sequence, as_text, whole_number, whole_number_of
from ringlet.collectives.buffers import Array
from ringlet.collectives.member import Member
from ringlet.collectives.op import Op
from ringlet.collectives.single_controller import all_reduce_all, plan_all_reduce_all
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import CollectiveAborted, InvalidArgumentError

__all__ = ["Group"]


class Group:
    """Ranks that compute together; each is driven by one thread at a time.

    All ranks make the same calls in the same order. A rank that calls something else makes all of them raise, naming
    who called what; no call waits longer than the time-out. A group that failed raises its first cause for ever: make a
    new one.

    Parameters
    ----------
    num_ranks : int
        From 1 to 4,096.
    timeout_seconds : float, optional
        How long a rank waits for the others; 0 for ever, None for the default of 600 s or
        ``RINGLET_TIMEOUT_SECONDS``.
    epoch : int
        A number that tells successive groups of one owner apart.

    Attributes
    ----------
    num_ranks : int
        Number of members.

    Raises
    ------
    InvalidArgumentError
        If `num_ranks` is out of range.

    Examples
    --------
    >>> import threading
    >>> import numpy as np
    >>> import ringlet
    >>> group = ringlet.collectives.Group(2)
    >>> results = [None, None]
    >>> def step(member):
    ...     results[member.rank] = member.all_reduce(np.array([1.0, member.rank]))
    >>> threads = [threading.Thread(target=step, args=(group.member(rank),)) for rank in range(2)]
    >>> for thread in threads: thread.start()
    >>> for thread in threads: thread.join()
    >>> results
    [array([2., 1.]), array([2., 1.])]
    """

    def __init__(self, num_ranks: int, *, timeout_seconds: float | None = None, epoch: int = 0) -> None:
        count = whole_number_of(32, num_ranks, "num_ranks", "a whole number of ranks")
        number = whole_number_of(64, epoch, "epoch", "a whole number")
        if number < 0:
            raise InvalidArgumentError(f"epoch is {number}: expected a number that is not negative.")
        self._core = _core.Group(count, resolve_timeout(timeout_seconds), number)
        self.num_ranks = count

    @property
    def epoch(self) -> int:
        """The number that was given to the constructor."""
        return self._core.epoch

    @property
    def failure(self) -> str | None:
        """The first cause of failure, or None while the group works."""
        return self._core.failure

    def member(self, rank: int) -> Member:
        """Give the handle through which one rank makes its calls.

        Parameters
        ----------
        rank : int
            From 0 to ``num_ranks - 1``.

        Raises
        ------
        InvalidArgumentError
            If there is no such rank.
        """
        number = whole_number(rank, "rank", f"a whole number below {self.num_ranks}")
        if not 0 <= number < self.num_ranks:
            raise InvalidArgumentError(f"rank {number} is not in this group: its ranks are 0 to {self.num_ranks - 1}.")
        return Member(self._core.member(number))

    def all_reduce_all(
        self,
        buffers: Sequence[Any],
        op: Op = Op.SUM,
        *,
        outs: Sequence[Array] | None = None,
        workers: int | None = None,
    ) -> Any:
        """Combine the arrays of all ranks where one thread has them all, without the ranks' own threads.

        Parameters
        ----------
        buffers : sequence of array-like
            One for each rank, in rank order, of one shape and dtype, of any memory layout.
        op : Op
            Which dtypes an operation takes is told there.
        outs : sequence of ndarray, optional
            Where to put the result, once for each rank; each may be its rank's buffer.
        workers : int, optional
            How many threads may share the work, this one included; by default as many as there are cores. Small arrays
            take one. The bits of the result do not depend on it.

        Returns
        -------
        ndarray or list of ndarray
            A read-only array, or `outs` as a list; the same bits as :meth:`Member.all_reduce` gives.

        Raises
        ------
        InvalidArgumentError
            If there is not one buffer for each rank, their shapes or dtypes differ, the operation does not take the
            dtype, `outs` do not fit, or two of them share memory.
        CollectiveAborted
            If the group has failed.

        Examples
        --------
        >>> import numpy as np
        >>> gradients = [np.ones(2), np.full(2, 3.0)]
        >>> group = Group(2)
        >>> group.all_reduce_all(gradients, Op.MEAN)
        array([2., 2.])
        >>> group.all_reduce_all(gradients, outs=gradients)
        [array([4., 4.]), array([4., 4.])]
        """
        buffers, outs = _one_each(buffers, outs, self.num_ranks)
        if (failure := self._core.failure) is not None:
            raise CollectiveAborted(failure)
        return all_reduce_all(buffers, op, outs, workers)

    def plan_all_reduce_all(
        self,
        buffers: Sequence[Array],
        op: Op = Op.SUM,
        *,
        outs: Sequence[Array] | None = None,
        workers: int | None = None,
    ) -> Callable[[], Any]:
        """Look at the arguments of :meth:`all_reduce_all` once, for many runs on the same arrays.

        Parameters
        ----------
        buffers, op, outs, workers
            As there. The arrays are used as they are: C-contiguous, aligned, in native byte order.

        Returns
        -------
        callable
            Without arguments. Each run combines what the buffers hold then, and returns what :meth:`all_reduce_all`
            would. The arrays live as long as the plan.

        Raises
        ------
        InvalidArgumentError
            As there, and if an array cannot be used as it is.

        Examples
        --------
        >>> import numpy as np
        >>> gradients = [np.ones(2), np.full(2, 3.0)]
        >>> plan = Group(2).plan_all_reduce_all(gradients, Op.MEAN, outs=gradients)
        >>> _ = plan()
        >>> gradients
        [array([2., 2.]), array([2., 2.])]
        """
        buffers, outs = _one_each(buffers, outs, self.num_ranks)
        return plan_all_reduce_all(buffers, op, outs, workers)

    def abort(self, reason: str) -> None:
        """Make every waiting and every later call raise `CollectiveAborted` with this reason.

        A group that has failed before keeps its first cause.
        """
        self._core.abort(as_text(reason))

    def __repr__(self) -> str:
        failure = f", failed: {self.failure.splitlines()[0]}" if self.failure else ""
        return f"<Group of {self.num_ranks} ranks, epoch {self.epoch}{failure}>"


def _one_each(buffers: Any, outs: Any, num_ranks: int) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """The arguments as sequences with one array for each rank."""
    buffers = as_sequence(buffers, "buffers")
    if outs is not None:
        outs = as_sequence(outs, "outs")
    for name, arrays in (("buffers", buffers), ("outs", buffers if outs is None else outs)):
        if len(arrays) != num_ranks:
            raise InvalidArgumentError(f"{name} has {len(arrays)} arrays: expected one for each of {num_ranks} ranks.")
    return buffers, outs
