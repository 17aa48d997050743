"""What one rank of a group can do: the calls that move values, that combine them, and that do neither."""

from __future__ import annotations

from ringlet.collectives.argument_parsing import as_text, whole_number_of
from ringlet.collectives.data_movement import Movement
from ringlet.collectives.reduction_collectives import Reductions
from ringlet.collectives.rooted_collectives import FromRoot
from ringlet.collectives.shutdown import Closing

__all__ = ["Member"]


class Member(Reductions, Movement, FromRoot, Closing):
    """One rank of a :class:`Group`. Made by :meth:`Group.member`, :func:`init_process_group` and :meth:`split`.

    Every call raises `CollectiveMismatchError` if the ranks did not make the same call, `CollectiveAborted` if another
    rank failed, `WorkerLostError` if another rank's process ended, and `DeadlineExceededError` if a rank did not come
    in time; the group has failed then. An
    `InvalidArgumentError` about the arguments of this rank alone comes before others take notice, so that it may call
    again.

    Outputs of a call that raised hold anything: treat them as lost.

    Arrays may be of any memory layout, and of the dtypes bool, int8 to int64, uint8 to uint64, float16 to float64,
    complex64, complex128 and, where ml_dtypes is installed, its bfloat16 and float8. Inputs must not be written to
    while a call lasts. Results are read-only arrays, or `out`, which belongs to the caller.

    Tensors of PyTorch and arrays of JAX in the memory of the CPU come back as such: a tensor in memory of its own, that
    may be written to. A rank that gives nothing, as to a broadcast, gets an array of NumPy. A tensor may be an `out`.

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
        """Wait until all ranks have come here.

        Parameters
        ----------
        name : str
            The same on all ranks; another name is a mismatch. Messages show it.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> Group(1).member(0).barrier("epoch 3")
        """
        self._core.barrier(as_text(name))

    def split(self, color: int | None, key: int = 0) -> Member | None:
        """Make groups of parts of this group's ranks.

        Parameters
        ----------
        color : int or None
            Ranks of one color form a new group. None takes part in the call, and in no new group.
        key : int
            Ranks of a new group are ordered by this number, and by their rank in this group where it is equal.

        Returns
        -------
        Member or None
            This rank's member of its new group; None for the color None.

        Raises
        ------
        InvalidArgumentError
            If `color` or `key` is no whole number, or has more than 32 or 64 bits.

        Notes
        -----
        The groups work at the same time, each with calls of its own, and have the time-out of this group. If this group
        fails, so do they; if one of them fails, this group goes on. A rank that departs from this group departs from
        its part, too; one that closes this group has closed its parts and plans.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> def step(member):
        ...     part = member.split(member.rank % 2)
        ...     return part.all_reduce(member.rank).item()
        >>> run_on_ranks(4, step)
        [2, 4, 2, 4]
        """
        number = None if color is None else whole_number_of(32, color, "color", "a whole number, or None")
        part = self._core.split(number, whole_number_of(64, key, "key", "a whole number"))
        return None if part is None else self._closed_with_me(type(self)(part))

    def depart(self, reason: str) -> None:
        """State that this rank makes no more calls, so that ranks that wait for it raise instead.

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
        """Take :meth:`depart` back. No rank may be in a call then.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> member = Group(1).member(0)
        >>> member.depart("returned")
        >>> member.rejoin()
        >>> member.barrier()
        """
        self._core.rejoin()
