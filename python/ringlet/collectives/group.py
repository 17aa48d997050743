"""A group of replica threads and what its members can do together."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from ringlet import _core
from ringlet.collectives.buffers import Array, Outputs, apart_from, as_buffer, as_buffers
from ringlet.collectives.op import Algorithm, Op
from ringlet.collectives.options import resolve_timeout
from ringlet.errors import InvalidArgumentError

__all__ = ["Group", "Member", "all_reduce_buffers"]


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
        try:
            count = operator.index(num_ranks)
        except TypeError:
            raise InvalidArgumentError(f"num_ranks is {num_ranks!r}: expected a whole number of ranks.") from None
        self._core = _core.Group(count, resolve_timeout(timeout_seconds), epoch)

    @property
    def num_ranks(self) -> int:
        """Number of members."""
        return self._core.num_ranks

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
        try:
            number = operator.index(rank)
        except TypeError:
            raise InvalidArgumentError(f"rank is {rank!r}: expected a whole number below {self.num_ranks}.") from None
        return Member(self._core, number)

    def abort(self, reason: str) -> None:
        """Make every waiting and every later call raise `CollectiveAborted` with this reason.

        A group that has failed before keeps its first cause.
        """
        self._core.abort(str(reason))

    def __repr__(self) -> str:
        failure = f", failed: {self.failure.splitlines()[0]}" if self.failure else ""
        return f"<Group of {self.num_ranks} ranks, epoch {self.epoch}{failure}>"


class Member:
    """One rank of a :class:`Group`. Made by :meth:`Group.member`.

    Every call raises `CollectiveMismatchError` if the ranks did not make the same call, `CollectiveAborted` if another
    rank failed, and `DeadlineExceededError` if a rank did not come in time.

    Examples
    --------
    >>> import ringlet
    >>> member = ringlet.collectives.Group(1).member(0)
    >>> member.all_reduce([1.0, 2.0], ringlet.collectives.Op.MEAN)
    array([1., 2.])
    """

    __slots__ = ("_core", "_group", "num_ranks", "rank")

    def __init__(self, group: _core.Group, rank: int) -> None:
        if not 0 <= rank < group.num_ranks:
            raise InvalidArgumentError(f"rank {rank} is not in this group: its ranks are 0 to {group.num_ranks - 1}.")
        self._group = group  # which must outlive its member
        self._core = group.member(rank)
        self.rank = rank
        self.num_ranks = group.num_ranks

    def all_reduce(
        self, x: Any, op: Op = Op.SUM, *, algorithm: Algorithm = Algorithm.AUTO, out: Array | None = None
    ) -> Array:
        """Combine the arrays of all ranks and give every rank the result.

        Parameters
        ----------
        x : array-like
            This rank's array: float32, float64, int32 or int64, of one shape and dtype on all ranks, any layout.
        op : Op
            SUM or MEAN.
        algorithm : Algorithm
            Same on all ranks.
        out : ndarray, optional
            Where to put the result; may be `x` itself. All ranks give one or none does.

        Returns
        -------
        ndarray
            `out`, or a read-only array. The memory of read-only results is shared by all ranks and reused when the
            last view of it dies.

        Raises
        ------
        InvalidArgumentError
            If the dtype is not supported or `out` does not fit.

        Notes
        -----
        Elements are combined in the order ((0+1)+(2+3))+((4+5)+...), whatever the size, so results repeat bit for bit;
        RING has the order of the ring.
        """
        return self.all_reduce_many([x], op, algorithm=algorithm, outs=None if out is None else [out])[0]

    def all_reduce_many(
        self,
        arrays: Sequence[Any],
        op: Op = Op.SUM,
        *,
        algorithm: Algorithm = Algorithm.AUTO,
        outs: Sequence[Array] | None = None,
    ) -> list[Array]:
        """Combine many arrays, of any mixture of dtypes, in one pass: as :meth:`all_reduce` of each.

        Parameters
        ----------
        arrays : sequence of array-like
            As many, in the same order, on all ranks.
        op, algorithm
            As for :meth:`all_reduce`.
        outs : sequence of ndarray, optional
            One for each array.

        Returns
        -------
        list of ndarray
            In the order of `arrays`.
        """
        if type(op) is not Op or type(algorithm) is not Algorithm:
            _refuse_selection(op, algorithm)
        try:
            return self._core.all_reduce(arrays, op.value, algorithm.value, outs)
        except _core.Unusable:  # the usual case costs nothing
            buffers = as_buffers(arrays)
        if outs is None:
            return self._core.all_reduce(buffers, op.value, algorithm.value, None)
        outputs = Outputs(outs, buffers, op)
        self._core.all_reduce(buffers, op.value, algorithm.value, outputs.direct)
        return outputs.store()

    def broadcast(self, x: Any = None, root: int = 0, *, out: Array | None = None) -> Array:
        """Give every rank the array of one of them.

        Parameters
        ----------
        x : array-like, optional
            The array to send. Ranks other than the root may leave it out; if they give one, it must have the root's
            shape and dtype.
        root : int
            The rank that sends.
        out : ndarray, optional
            Where to put the array, given together with `x`. All ranks give one or none does.

        Returns
        -------
        ndarray
            `out`, or a read-only array whose memory all ranks share.

        Raises
        ------
        InvalidArgumentError
            If there is no rank `root`, the root sends nothing, or `out` does not fit.
        """
        try:
            root = operator.index(root)
        except TypeError:
            raise InvalidArgumentError(f"root is {root!r}: expected the number of a rank.") from None
        if x is None and out is None:
            return self._core.broadcast(None, root, None)[0]
        buffers = [as_buffer(out if x is None else x)]
        if out is None:
            return self._core.broadcast(buffers, root, None)[0]
        outputs = Outputs([out], buffers, Op.SUM)
        self._core.broadcast(buffers, root, outputs.direct)
        return outputs.store()[0]

    def barrier(self, name: str = "") -> None:
        """Wait until all ranks have come here.

        Parameters
        ----------
        name : str
            The same on all ranks; another name is a mismatch. Messages show it.
        """
        self._core.barrier(str(name))

    def depart(self, reason: str) -> None:
        """State that this rank makes no more calls, so that ranks that wait for it raise instead.

        Parameters
        ----------
        reason : str
            Completes the sentence "rank 1 ...", for example ``"returned"``.
        """
        self._core.depart(reason)

    def rejoin(self) -> None:
        """Take :meth:`depart` back. No rank may be in a call then."""
        self._core.rejoin()

    def __repr__(self) -> str:
        return f"<Member {self.rank} of {self.num_ranks}>"


def all_reduce_buffers(arrays: Sequence[Any], op: Op = Op.SUM, *, out: Array | None = None) -> Array:
    """Combine the arrays of all ranks where one thread has them all.

    Parameters
    ----------
    arrays : sequence of array-like
        In rank order, of one shape and dtype.
    op : Op
        SUM or MEAN.
    out : ndarray, optional
        Where to put the result; may be one of `arrays`.

    Returns
    -------
    ndarray
        `out`, or a read-only array; the same bits as :meth:`Member.all_reduce` gives.

    Raises
    ------
    InvalidArgumentError
        If there is no array, or their shapes or dtypes differ.

    Examples
    --------
    >>> all_reduce_buffers([[1, 2], [3, 5]], Op.MEAN)
    array([2. , 3.5])
    """
    if type(op) is not Op:
        _refuse_selection(op, Algorithm.AUTO)
    try:
        return _core.reduce_buffers(arrays, op.value, out)
    except _core.Unusable:
        buffers = as_buffers(arrays)
    if not buffers:
        raise InvalidArgumentError("there is nothing to reduce: give the array of at least one rank.")
    for rank, buffer in enumerate(buffers):
        if buffer.shape != buffers[0].shape or buffer.dtype != buffers[0].dtype:
            raise InvalidArgumentError(
                f"the arrays to reduce differ: {buffers[0].dtype}{list(buffers[0].shape)} at rank 0, "
                f"{buffer.dtype}{list(buffer.shape)} at rank {rank}. Give all ranks one shape and dtype."
            )
    if out is None:
        return _core.reduce_buffers(buffers, op.value, None)
    outputs = Outputs([out], buffers[:1], op)
    _core.reduce_buffers([apart_from(outputs.direct[0], buffer) for buffer in buffers], op.value, outputs.direct[0])
    return outputs.store()[0]


def _refuse_selection(op: Any, algorithm: Any) -> NoReturn:
    name, given, expected = ("algorithm", algorithm, Algorithm) if type(op) is Op else ("op", op, Op)
    choices = ", ".join(f"{expected.__name__}.{choice.name}" for choice in expected)
    raise InvalidArgumentError(f"{name} is {given!r}: expected one of ringlet.collectives.{choices}.")
