"""Group: ranks that threads of one process drive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ringlet import _core
from ringlet.collectives.argument_parsing import as_sequence, as_text, whole_number, whole_number_of
from ringlet.collectives.buffers import Array
from ringlet.collectives.member import Member
from ringlet.collectives.message_passing import ThreadInboxes
from ringlet.collectives.op import Op
from ringlet.collectives.single_controller import all_reduce_all, plan_all_reduce_all
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import CollectiveAborted, InvalidArgumentError
from ringlet.observe.stall_reports import report_stalls


class Group:
    """A group of ranks, each driven by one thread at a time.

    All ranks make the same calls in the same order. If a rank makes a different call, all ranks raise an error that
    lists the calls; no call waits longer than the time-out. After a failure every call raises the first error: create a
    new group.

    Parameters
    ----------
    num_ranks : int
        From 1 to 4,096.
    timeout_seconds : float, optional
        Maximum wait of a rank for other ranks; 0 for no limit, None for the default of 600 s or
        ``RINGLET_TIMEOUT_SECONDS``.
    epoch : int
        A number that distinguishes successive groups of the same ranks.

    Attributes
    ----------
    num_ranks : int
        Number of members.

    Raises
    ------
    InvalidArgumentError
        If `num_ranks` or `epoch` is out of range.

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
        count = whole_number_of(32, num_ranks, "num_ranks", "an integer")
        number = whole_number_of(64, epoch, "epoch", "an integer")
        if number < 0:
            raise InvalidArgumentError(f"epoch is {number}: expected a non-negative number.")
        seconds = resolve_timeout(timeout_seconds)
        self._core = _core.Group(count, seconds, number, stall_seconds=report_stalls())
        self._inboxes = ThreadInboxes(range(count), seconds)
        self.num_ranks = count

    @property
    def epoch(self) -> int:
        """The number passed to the constructor."""
        return self._core.epoch

    @property
    def failure(self) -> str | None:
        """The text of the first error; None if the group has not failed."""
        return self._core.failure

    def member(self, rank: int) -> Member:
        """Return the handle for the calls of one rank.

        Parameters
        ----------
        rank : int
            From 0 to ``num_ranks - 1``.

        Raises
        ------
        InvalidArgumentError
            If `rank` is out of range.
        """
        number = whole_number(rank, "rank", f"an integer below {self.num_ranks}")
        if not 0 <= number < self.num_ranks:
            raise InvalidArgumentError(f"rank {number} is not in this group: its ranks are 0 to {self.num_ranks - 1}.")
        return Member(self._core.member(number), self._inboxes)

    def all_reduce_all(
        self,
        buffers: Sequence[Any],
        op: Op = Op.SUM,
        *,
        outs: Sequence[Array] | None = None,
        workers: int | None = None,
    ) -> Any:
        """Combine the arrays of all ranks in one call, without the ranks' own threads.

        Parameters
        ----------
        buffers : sequence of array-like
            An array for each rank, in rank order, all of one shape and dtype, of any memory layout.
        op : Op
            See :class:`Op` for the supported dtypes.
        outs : sequence of ndarray, optional
            An array for the result of each rank; each may be the rank's own buffer.
        workers : int, optional
            Maximum number of threads, including the caller's; the number of cores by default. Small arrays use one
            thread. The bits of the result do not depend on `workers`.

        Returns
        -------
        ndarray or list of ndarray
            A read-only array, or `outs` as a list; the same bits as from :meth:`Member.all_reduce`.

        Raises
        ------
        InvalidArgumentError
            If there is not one buffer for each rank, their shapes or dtypes differ, the operation does not support the
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
        buffers, outs = _check_counts(buffers, outs, self.num_ranks)
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
        """Prepare an :meth:`all_reduce_all` that runs many times on the same arrays.

        Parameters
        ----------
        buffers, op, outs, workers
            As for :meth:`all_reduce_all`; arrays must be C-contiguous, aligned and in native byte order.

        Returns
        -------
        callable
            Takes no arguments. Each call combines the current contents of the buffers and returns the result of
            :meth:`all_reduce_all`. The plan keeps the arrays alive.

        Raises
        ------
        InvalidArgumentError
            As for :meth:`all_reduce_all`, and if an array would need a conversion.

        Examples
        --------
        >>> import numpy as np
        >>> gradients = [np.ones(2), np.full(2, 3.0)]
        >>> plan = Group(2).plan_all_reduce_all(gradients, Op.MEAN, outs=gradients)
        >>> _ = plan()
        >>> gradients
        [array([2., 2.]), array([2., 2.])]
        """
        buffers, outs = _check_counts(buffers, outs, self.num_ranks)
        return plan_all_reduce_all(buffers, op, outs, workers)

    def abort(self, reason: str) -> None:
        """Make all waiting and later calls raise `CollectiveAborted` with this reason.

        No effect if the group has already failed.
        """
        self._core.abort(as_text(reason))

    def __repr__(self) -> str:
        failure = f", failed: {self.failure.splitlines()[0]}" if self.failure else ""
        return f"<Group of {self.num_ranks} ranks, epoch {self.epoch}{failure}>"


def _check_counts(buffers: Any, outs: Any, num_ranks: int) -> tuple[Sequence[Any], Sequence[Any] | None]:
    buffers = as_sequence(buffers, "buffers")
    if outs is not None:
        outs = as_sequence(outs, "outs")
    for name, arrays in (("buffers", buffers), ("outs", buffers if outs is None else outs)):
        if len(arrays) != num_ranks:
            raise InvalidArgumentError(f"{name} has {len(arrays)} arrays: expected one for each of {num_ranks} ranks.")
    return buffers, outs
