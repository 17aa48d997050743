"""One run of a step function on the replicas of this process."""

from __future__ import annotations

import contextvars
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ringlet import context
from ringlet.errors import CollectiveMismatchError, DeadlineExceededError
from ringlet.strategy.api.call_options import CallOptions, read_options
from ringlet.strategy.api.context_checks import refuse_stale
from ringlet.strategy.api.structure_agreement import Shapes
from ringlet.strategy.replica.error_selection import add_note, first_failure, one_line, other_failures, whereabouts
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.strategy.replica.replica_threads import NO_WORK, Crew, fork_count
from ringlet.values import check_components, regroup, select_replica

if TYPE_CHECKING:
    from ringlet.collectives import Member
    from ringlet.strategy.api.cross_device_ops import CrossDeviceOps
    from ringlet.strategy.api.strategy import Strategy

__all__ = ["ReplicaRun"]

# Without it, two threads may each miss what the other has just done.
_HAS_INTERPRETER_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()
# np.errstate is a context variable from NumPy 2 on, and a property of threads before.
_CONTEXTS_CARRY_ERRSTATE = int(np.__version__.partition(".")[0]) >= 2
# The place of the calling thread's own failure among those of the replicas.
_CALLER = -1


def _no_function() -> None:
    """What a run calls that is over."""


class ReplicaRun:
    """One run: claims replicas, keeps their answers and their failures.

    Parameters
    ----------
    strategy : Strategy
        Current while replicas run.
    crew : Crew
        Belongs to this run until it is over.
    ops : CrossDeviceOps
        How collectives that ask for nothing else combine values.
    first_replica : int
        Which of all replicas is the first one of this process.
    writable_results : bool
        Whether replicas get arrays of their own from ``all_reduce``.
    """

    def __init__(
        self, strategy: Strategy, crew: Crew, ops: CrossDeviceOps, first_replica: int, writable_results: bool = False
    ) -> None:
        self.strategy = strategy
        self.crew = crew
        self.ops = ops
        self.writable_results = writable_results
        self.is_plain = ops._is_core and not writable_results
        self.first_replica = first_replica
        self._failures: dict[int, BaseException] = {}
        self._merge_calls: dict[int, Any] = {}

    _fn: Callable[..., Any]
    _rows: Sequence[Sequence[Any]]
    _keywords: Sequence[Mapping[str, Any]]
    _contexts: list[contextvars.Context]
    _results: list[Any]
    _errors: Any

    shapes: Shapes
    """What replicas give to ``all_reduce``: compared, because the core sees flat lists of arrays."""

    members: Sequence[Member]
    """The ranks of the replicas of this process, in the group that combines their values."""

    ended: list[bool]
    """Which replicas have ended: their contexts are of no use any more."""

    # Whether replicas that have not begun are left out.
    _stops = False
    # Whether a replica has used the group in this run, so that the others must hear of it when one ends.
    _uses_group = not _HAS_INTERPRETER_LOCK
    # What the last merge_call gave or raised.
    _merged: Any = None
    _merge_error: Exception | None = None
    # The replicas that have not taken their part of it.
    _takers: set[int]

    def drive(
        self,
        fn: Callable[..., Any],
        rows: Sequence[Sequence[Any]],
        keywords: Sequence[Mapping[str, Any]],
        timeout_seconds: float,
    ) -> list[Any]:
        """Run all replicas, in this thread those that no helper takes.

        Parameters
        ----------
        fn : callable
        rows : sequence of sequence
            Positional arguments of each replica.
        keywords : sequence of mapping
            Keyword arguments of each replica.
        timeout_seconds : float
            How long to wait for replicas that run in helpers.

        Returns
        -------
        list
            What each replica gave.

        Raises
        ------
        DeadlineExceededError
            If replicas are still running then.
        """
        self._fn, self._rows, self._keywords = fn, rows, keywords
        self._contexts = [contextvars.copy_context() for _ in rows]
        self._results = results = [None] * len(rows)
        self.ended = [False] * len(rows)
        if self._uses_group:
            self.__dict__.setdefault("shapes", Shapes(len(rows)))
        self._errors = None if _CONTEXTS_CARRY_ERRSTATE else np.geterr()
        forks, deadline = fork_count(), time.monotonic() + timeout_seconds
        try:
            num_mine = self._claim_all()
            _refuse_child(forks)
            is_finished = num_mine == len(rows) or self.crew.claims.wait_finished(timeout_seconds)
        except BaseException as error:  # Ctrl-C, in most cases
            _refuse_child(forks)
            is_finished = self._wind_up(error, deadline)
        if not is_finished:
            self._raise_deadline(timeout_seconds)
        self.crew.work = NO_WORK
        self._forget()
        if self._failures:
            self._raise_first()
        return results

    def execute(self, replica: int) -> None:
        """Run one replica to its end, in any thread."""
        try:
            if not self._stops:
                self._results[replica] = self._contexts[replica].run(self._call, replica)
        except BaseException as error:
            self._fail(replica, error)
        finally:
            self._leave(replica)

    @property
    def is_given_up(self) -> bool:
        """Whether the run has raised while replicas were busy."""
        return self.crew.is_given_up

    def use_group(self) -> None:
        """State that a replica is about to call the group: from now on replicas that end take leave of it.

        A run that never calls the group, as a mapping over replicas does, is spared that cost.
        """
        if not self._uses_group:
            if self.crew.work is not self:  # a thread that outlived its run
                refuse_stale()
            # One for all: several replicas may come here before one has passed.
            self.__dict__.setdefault("shapes", Shapes(len(self.ended)))
            self._uses_group = True
            self.crew.claims.summon_all()
            for replica, has_ended in enumerate(self.ended):
                if has_ended:
                    self.crew.depart(replica)

    # What comes before each collective of a replica; one that has other members has more to do.
    begin_collective = use_group

    def asked_of(self, options: Any) -> CallOptions:
        """Read what the options of one collective ask for."""
        return read_options(options, self.ops.algorithm)

    def abort(self, reason: str) -> None:
        """End the collective that replicas wait in."""
        self.crew.group.abort(reason)

    def merge_call(
        self,
        replica: int,
        merge_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        name: str = "merge_call",
    ) -> Any:
        """Call `merge_fn` once for all replicas, which give one name; see :meth:`ReplicaContext.merge_call`."""
        self.use_group()
        self._merge_calls[replica] = (merge_fn, args, kwargs)
        self._meet(replica, name)
        if replica == 0:
            self._takers = set(range(len(self._rows)))
            try:
                self._merged, self._merge_error = self._merge(), None
            except Exception as error:
                self._merge_error = error
        # Nobody starts the next merge_call, which would overwrite this answer, before all have passed here.
        self._meet(replica, f"the end of {name}")
        if self._merge_error is not None:
            raise self._merge_error
        merged = select_replica(replica, self._merged)
        # Whoever sees that all have taken theirs lets go of it; the next merge_call waits for all of them.
        self._takers.discard(replica)
        if not self._takers:
            self._merged = None
        return merged

    def _call(self, replica: int) -> Any:
        context.enter(ReplicaContext._of_run(self, replica))
        if self._errors is not None:
            np.seterr(**self._errors)
        return self._fn(*self._rows[replica], **self._keywords[replica])

    def _leave(self, replica: int) -> None:
        # In this order, while use_group works in the opposite one: under the interpreter lock one of the two
        # sees what the other did.
        self.ended[replica] = True
        if self._uses_group:
            self.crew.depart(replica)
        self.crew.claims.finish(replica)

    def _fail(self, replica: int, error: BaseException) -> None:
        self._failures[replica] = error
        self._stops = True
        self.crew.group.abort(f"replica {replica} raised {one_line(error)}" if replica >= 0 else one_line(error))

    def _claim_all(self) -> int:
        """Run replicas until none is left to claim; give the number of those that ran in this thread."""
        claims = self.crew.claims
        replica = -1
        num_mine = 0
        try:
            self.crew.prepare(self)
            self.members = self.crew.members
            claims.open()
            # No signal is handled between a claim and the assignment of its replica.
            for replica in iter(claims.claim, -1):
                self.execute(replica)
                num_mine += 1
        except BaseException as error:  # Ctrl-C between two instructions of this file
            self._fail(_CALLER, error)
            if replica in claims.running():  # it left in part at most, and may leave again
                self._leave(replica)
            raise
        return num_mine

    def _wind_up(self, error: BaseException, deadline: float) -> bool:
        """End a run that the calling thread cannot go on with; give whether all replicas have ended."""
        claims = self.crew.claims
        is_second = any(
            isinstance(other, KeyboardInterrupt) and other is not error for other in self._failures.values()
        )
        self._fail(_CALLER, error)  # replicas in a collective unwind now; others are waited for
        for unclaimed in iter(claims.claim, -1):
            self._leave(unclaimed)
        if is_second:
            raise error
        # Nothing runs if Ctrl-C came before the run was opened, and then nothing will ever finish.
        return not claims.running() or claims.wait_finished(max(0.0, deadline - time.monotonic()))

    def _raise_deadline(self, timeout_seconds: float) -> NoReturn:
        running = self.crew.claims.running()
        where = "; ".join(f"replica {replica} is {whereabouts(self.crew.threads.get(replica))}" for replica in running)
        text = (
            f"strategy.run waited {timeout_seconds:g} s for {len(running)} of {len(self._results)} replicas to return: "
            f"{where}. Allow more with RINGLET_TIMEOUT_SECONDS, or 0 to wait for ever; this strategy is closed now"
        )
        self.crew.group.abort(text)
        raise DeadlineExceededError(text) from (first_failure(self._failures)[1] if self._failures else None)

    def _forget(self) -> None:
        """Let go of what replicas were given and gave: replica contexts, which hold this run, may be among it."""
        self._fn = _no_function
        self._rows, self._keywords, self._results = [], [], []
        self._contexts.clear()
        self._merge_calls.clear()
        self._merged = self._merge_error = None

    def _raise_first(self) -> NoReturn:
        replica, error = first_failure(self._failures)
        if replica != _CALLER:
            first = self.first_replica  # of those of other processes, which count too
            others = other_failures({first + i: each for i, each in self._failures.items() if i >= 0}, first + replica)
            add_note(error, f"raised in replica {first + replica} of {self.strategy.num_replicas_in_sync}{others}")
        # The traceback holds this frame and this run: neither may hold the exception in turn.
        self._failures = {}
        try:
            raise error
        finally:
            del error

    def _meet(self, replica: int, name: str) -> None:
        try:
            self.crew.members[replica].barrier(name)
        except CollectiveMismatchError as error:
            if "did not make the same call" in str(error):  # and which, in the core's words
                raise
            raise CollectiveMismatchError(
                f"Some replicas made a different number of replica_context().merge_call() calls: {error}"
            ) from error

    def _merge(self) -> Any:
        calls = [self._merge_calls.pop(replica) for replica in range(len(self._rows))]
        merge_fn = calls[0][0]
        args = regroup([tuple(args) for _, args, _ in calls])
        kwargs = regroup([dict(kwargs) for _, _, kwargs in calls])
        merged = context.call_in(context.Mode(self.strategy), merge_fn, self.strategy, *args, **kwargs)
        check_components(merged, len(self._rows), "merge_fn gave")
        return merged


def _refuse_child(forks: int) -> None:
    if fork_count() != forks:
        raise RuntimeError(
            "a step function forked this process, and the child returned from it into strategy.run, whose other "
            "replicas are in the parent: end the child inside of the step function, with os._exit"
        )
