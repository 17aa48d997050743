"""Handle of one rank of a group, with all its collectives."""

from __future__ import annotations

import weakref

from ringlet.collectives.argument_parsing import as_text, whole_number_of
from ringlet.collectives.data_movement import DataMovement
from ringlet.collectives.message_passing import MessagePassing
from ringlet.collectives.reduction_collectives import Reductions
from ringlet.collectives.rooted_collectives import RootedCollectives
from ringlet.collectives.shutdown import Shutdown
from ringlet.collectives.work import asynchronous


class Member(Reductions, DataMovement, RootedCollectives, MessagePassing, Shutdown):
    """One rank of a :class:`Group`. Created by :meth:`Group.member`, :func:`init_process_group` and :meth:`split`.

    Every collective raises `CollectiveMismatchError` if ranks did not make the same call, `CollectiveAborted` if
    another rank failed, `WorkerLostError` if another rank's process exited, and `DeadlineExceededError` if a rank did
    not call in time; the group has then failed. An `InvalidArgumentError` about this rank's arguments alone is raised
    before the call starts, so that the rank may call again.

    After a call that raised an error, the contents of its outputs are undefined.

    Arrays may be of any memory layout, and of the dtypes bool, int8 to int64, uint8 to uint64, float16 to float64,
    complex64, complex128 and, where ml_dtypes is installed, its bfloat16 and float8. Inputs must not be written to
    during a call. Results of collectives are read-only arrays, or `out`, which belongs to the caller.

    For PyTorch tensors and JAX arrays in CPU memory the results are of the same type; a tensor has its own, writeable
    memory. A rank that passes no array, for example to a broadcast, receives a NumPy array. `out` may be a tensor.

    Attributes
    ----------
    rank : int
        The position in the group, from 0.
    num_ranks : int
        Size of the group.

    Examples
    --------
    >>> import ringlet
    >>> member = ringlet.collectives.Group(1).member(0)
    >>> member.all_reduce([1.0, 2.0], ringlet.collectives.Op.MEAN)
    array([1., 2.])
    """

    __slots__ = ()

    def barrier(self, name: str = "") -> None:
        """Wait until all ranks have called this method.

        Parameters
        ----------
        name : str
            Shown in messages. Different names on different ranks are a mismatch.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> Group(1).member(0).barrier("epoch 3")
        """
        self._core.barrier(as_text(name))

    all_reduce_async = asynchronous(Reductions.all_reduce)
    all_reduce_many_async = asynchronous(Reductions.all_reduce_many)
    reduce_async = asynchronous(Reductions.reduce)
    reduce_scatter_async = asynchronous(Reductions.reduce_scatter)
    exclusive_scan_async = asynchronous(Reductions.exclusive_scan)
    all_gather_async = asynchronous(DataMovement.all_gather)
    gather_async = asynchronous(DataMovement.gather)
    all_to_all_async = asynchronous(DataMovement.all_to_all)
    collective_permute_async = asynchronous(DataMovement.collective_permute)
    scatter_async = asynchronous(RootedCollectives.scatter)
    broadcast_async = asynchronous(RootedCollectives.broadcast)
    broadcast_many_async = asynchronous(RootedCollectives.broadcast_many)
    barrier_async = asynchronous(barrier)

    def split(self, color: int | None, key: int = 0) -> Member | None:
        """Partition the ranks of this group into new groups.

        Parameters
        ----------
        color : int or None
            Ranks with the same color form a new group. A rank that passes None joins no new group.
        key : int
            Ranks of a new group are ordered by this number, then by their rank in this group.

        Returns
        -------
        Member or None
            This rank's member of the new group; None for the color None.

        Raises
        ------
        InvalidArgumentError
            If `color` is not a 32-bit integer, or `key` not a 64-bit integer.

        Notes
        -----
        The new groups run concurrently and independently, with the time-out of this group and messages of their own. If
        this group fails, its new groups fail too; the failure of a new group does not affect this group. A rank that
        departs from or closes this group also departs from or closes its new groups and plans. A member of a new group
        is closed when it is garbage-collected.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> def step(member):
        ...     part = member.split(member.rank % 2)
        ...     return part.all_reduce(member.rank).item()
        >>> run_on_ranks(4, step)
        [2, 4, 2, 4]
        """
        number = None if color is None else whole_number_of(32, color, "color", "an integer, or None")
        order = whole_number_of(64, key, "key", "an integer")
        inbox, part = self._inboxes.open_part(), None
        try:
            part = self._core.split(number, order, inbox.label)
        finally:
            if part is None:
                inbox.close()
        if part is None:
            return None
        core, ranks, labels = part
        inboxes = self._inboxes.join_part(inbox, core.rank, ranks, labels)
        member = type(self)(core, inboxes)
        weakref.finalize(member, inboxes.close, core.rank).atexit = False
        return self._close_with_self(member)

    def depart(self, reason: str) -> None:
        """Declare that this rank makes no more calls, so that ranks that wait for it raise an error.

        Parameters
        ----------
        reason : str
            Completes the sentence "rank 1 ...", for example ``"returned"``.

        Examples
        --------
        >>> import ringlet
        >>> group = ringlet.collectives.Group(2)
        >>> group.member(1).depart("returned")
        >>> group.member(0).barrier()
        Traceback (most recent call last):
        ringlet.errors.CollectiveMismatchError: ...
        """
        self._core.depart(as_text(reason))

    def rejoin(self) -> None:
        """Undo :meth:`depart`. No rank may be in a call.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> member = Group(1).member(0)
        >>> member.depart("returned")
        >>> member.rejoin()
        >>> member.barrier()
        """
        self._core.rejoin()
