"""One run of a step function on the replicas of one worker.

Collectives span all workers; a ``merge_call`` spans the replicas of one process, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ringlet import context
from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.strategy.calls.call_options import CallOptions
from ringlet.strategy.calls.context_checks import refuse_stale
from ringlet.strategy.calls.structure_agreement import LEAF, Shapes
from ringlet.strategy.replica.error_selection import one_line
from ringlet.strategy.replica.replica_context import merge_call_single
from ringlet.strategy.replica.replica_threads import ReplicaThreads
from ringlet.strategy.replica.step_execution import ReplicaRun
from ringlet.strategy.replica.watchdog import call_later

if TYPE_CHECKING:
    from ringlet.collectives import Member
    from ringlet.strategy.api.cross_device_ops import CrossDeviceOps
    from ringlet.strategy.api.strategy import Strategy
    from ringlet.strategy.multi_worker.worker_group import WorkerGroup

_COLLECTIVE = "a collective"
_MERGE_CALL = "merge_call"
# Interval at which a failed replica checks whether another replica waits for it; doubled up to the maximum.
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5


class WorkerShapes(Shapes):
    """The structures that replicas of several processes pass to their collectives.

    Within a process, structures are compared at every call. Between processes, only a new structure is compared: the
    replicas enter a barrier whose name describes the structure, and different names are a mismatch.
    """

    __slots__ = ("_workers",)

    def __init__(self, num_replicas: int, workers: WorkerGroup) -> None:
        super().__init__(num_replicas)
        self._workers = workers

    def record(self, replica: int, shape: Any, call: str) -> None:
        """Record the structure of a replica's next call, and compare a new structure between the processes."""
        super().record(replica, shape, call)
        if shape is not LEAF:
            self._workers.check_structures_of(replica, [shape], call)


class SingleRun:
    """A run of the only replica of a worker, in the thread that called ``run``."""

    def __init__(self, strategy: Strategy, workers: WorkerGroup, ops: CrossDeviceOps, writable_results: bool) -> None:
        self.strategy = strategy
        self.workers = workers
        self.ops = ops
        self.writable_results = writable_results
        self.is_plain = not writable_results and workers.is_plain
        self.first_replica = workers.first_rank
        self.shapes = WorkerShapes(1, workers)
        self.ended = [False]

    members: Sequence[Member] = ()
    # The only replica runs in the calling thread: no other replica can fail, and no thread outlives the run.
    is_abandoned = is_stopping = False
    whole_batch = 0

    def begin_collective(self) -> None:
        """Prepare a collective in the group of all replicas."""
        if self.ended[0]:
            refuse_stale()
        member = self.workers.member(0)
        if not self.members:
            member._core.begin_series()
            self.members = (member,)

    def end(self) -> None:
        """Record that the replica has ended."""
        self.ended[0] = True
        if self.members:
            self.members[0]._core.end_series()

    def call_options(self, options: Any) -> CallOptions:
        """Parse the options of one collective."""
        return self.workers.call_options(options)

    def abort(self, reason: str) -> None:
        """Abort the group of all replicas, in which the replica may wait."""
        self.workers.abort(f"gave up: {reason}")

    def merge_call(
        self,
        replica: int,
        merge_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        name: str = "merge_call",
        *,
        any_thread: bool = False,
    ) -> Any:
        """Call `merge_fn` for the only replica of this process."""
        return merge_call_single(self.strategy, merge_fn, args, kwargs)


class WorkerRun(ReplicaRun):
    """A run of several replicas of a worker.

    Takes the arguments of :class:`ReplicaRun`. The replicas of this process have a separate group for ``merge_call``,
    from which a replica departs when it ends. It cannot depart from the group of all replicas, which outlives this run.
    Instead, it aborts the group of all replicas if another replica of this process waits for it in a call, because the
    call could never complete.
    """

    def __init__(
        self,
        strategy: Strategy,
        threads: ReplicaThreads,
        ops: CrossDeviceOps,
        first_replica: int,
        writable_results: bool = False,
    ) -> None:
        super().__init__(strategy, threads, ops, first_replica, writable_results)
        workers = strategy.extended._workers
        self.workers: WorkerGroup = workers
        self.is_plain = self.is_plain and workers.is_plain
        count = workers.num_local
        # Number of calls each replica has started, and the kind of each call.
        self._entered = [0] * count
        self._kinds: dict[int, str] = {}
        self._is_in_series = [False] * count
        self.__dict__["shapes"] = WorkerShapes(count, workers)

    def begin_collective(self) -> None:
        """Prepare a replica's collective in the group of all replicas."""
        self.use_group()
        replica = context.current().local_replica_id  # type: ignore[union-attr]  # a replica calls
        assert replica is not None
        # The members exist before the call is counted, because only an existing group can be aborted.
        self.members = self.workers.members()
        self._enter(replica, _COLLECTIVE)
        member = self.workers.member(replica)
        if not self._is_in_series[replica]:
            self._is_in_series[replica] = True
            member._core.begin_series()

    def call_options(self, options: Any) -> CallOptions:
        """Parse the options of one collective."""
        return self.workers.call_options(options)

    def abort(self, reason: str) -> None:
        """Abort the group of all replicas and the group of this process, in which replicas may wait."""
        super().abort(reason)
        self.workers.abort(f"gave up: {reason}")

    def merge_call(
        self,
        replica: int,
        merge_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        name: str = "merge_call",
        *,
        any_thread: bool = False,
    ) -> Any:
        """Call `merge_fn` once for the replicas of this process."""
        self._enter(replica, _MERGE_CALL)
        # Not any_thread: a merge may wait for other workers, so it needs its own barrier and time-out.
        return super().merge_call(replica, merge_fn, args, kwargs, name)

    def _merge(self, calls: Sequence[Any]) -> Any:
        with self.workers.single_thread.transferred():
            return super()._merge(calls)

    def _enter(self, replica: int, kind: str) -> None:
        problem = self._count_call(replica, kind)
        if problem is None:
            return
        if self.workers.failure is not None:  # a failure of the group takes precedence over any other error
            self.workers.members()[replica].barrier()
        raise problem

    def _count_call(self, replica: int, kind: str) -> Exception | None:
        """Count the next call of a replica; return the error if the call cannot be made."""
        # Only this call fails: _release_waiting aborts the group if a replica already waits for other workers.
        for other, error in list(self._failures.items()):
            return CollectiveAborted(f"{self._name(other)} raised {one_line(error)}")
        number = self._entered[replica] + 1
        first = self._kinds.setdefault(number, kind)
        self._entered[replica] = number  # stored after the kind, which _release_waiting needs
        if first != kind:
            text = (
                f"replicas of one worker did not make the same call (call {number} of this run): {self._name(replica)} "
                f"entered {kind}, another replica {first}. Make the same calls in the same order on every replica"
            )
            self.workers.abort(f"cannot continue: {text}")
            return CollectiveMismatchError(text)
        for other, has_ended in enumerate(self.ended):
            if has_ended and self._entered[other] < number:
                # If the other replica ends after this check, _release_waiting aborts the group.
                if kind == _COLLECTIVE:
                    self._abort_waiting(other, replica, "has returned")
                return CollectiveMismatchError(
                    f"{self._name(other)} has ended after {self._entered[other]} calls, and {self._name(replica)} "
                    f"makes call {number}, {kind}. Make the same calls in the same order on every replica"
                )
        return None

    def _name(self, replica: int) -> str:
        return f"replica {self.first_replica + replica}" if replica >= 0 else "the thread that called strategy.run"

    def _fail(self, replica: int, error: BaseException) -> None:
        super()._fail(replica, error)
        self._release_waiting(replica, error)

    def _finish(self, replica: int) -> None:
        self.ended[replica] = True
        if self._is_in_series[replica]:
            self.members[replica]._core.end_series()
        self._release_waiting(replica, self._failures.get(replica))
        super()._finish(replica)

    def _release_waiting(self, replica: int, error: BaseException | None) -> None:
        """Abort the group of all replicas if another replica of this process waits in a collective for `replica`."""
        what = "has returned" if error is None else f"raised {one_line(error).rstrip('.')}"
        mine = self._entered[replica] if replica >= 0 else -1
        for other, number in enumerate(self._entered):
            if other == replica or self.ended[other] or not number or self._kinds[number] != _COLLECTIVE:
                continue
            if number > mine:
                self._abort_waiting(replica, other, what)
            elif error is not None and number == mine:
                self._check_later(replica, other, what, _FIRST_PAUSE_SECONDS)

    def _check_later(self, replica: int, other: int, what: str, seconds: float) -> None:
        """Abort the group if `other` waits in a collective that the failed `replica` has not entered.

        Both replicas have started the same call, but may not have entered the core's collective yet: check again later.
        """
        if self.ended[other] or self.threads.work is not self or not self.workers.is_joined:
            return
        members = self.workers.members()
        if members[other]._core.calls > members[replica]._core.calls:
            self._abort_waiting(replica, other, what)
        else:
            pause = min(2 * seconds, _LONGEST_PAUSE_SECONDS)
            call_later(seconds, lambda: self._check_later(replica, other, what, pause))

    def _abort_waiting(self, replica: int, other: int, what: str) -> None:
        self.workers.abort(
            f"cannot continue: {self._name(replica)} {what}, and {self._name(other)} waits for it in a collective"
        )

    def _raise_failure(self) -> NoReturn:
        # All replicas report the same failure of the group with different texts: keep one error of each class.
        reported: set[type[BaseException]] = set()
        for replica, error in sorted(self._failures.items()):
            self.workers.annotate(error)
            if self.workers.is_group_failure(error):
                if type(error) in reported:
                    del self._failures[replica]
                reported.add(type(error))
        super()._raise_failure()

    def _raise_timeout(self, timeout_seconds: float) -> NoReturn:
        self.workers.abort(f"gave up: its replicas have not ended within {timeout_seconds:g} s")
        super()._raise_timeout(timeout_seconds)
