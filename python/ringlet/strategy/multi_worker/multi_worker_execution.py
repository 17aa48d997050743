"""One run of a step function on the replicas of one of several workers.

What replicas combine goes over all workers; a ``merge_call`` is between the replicas of one process, as TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ringlet import context
from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.strategy.api.call_options import CallOptions
from ringlet.strategy.api.context_checks import refuse_stale
from ringlet.strategy.api.structure_agreement import LEAF, Shapes
from ringlet.strategy.replica.error_selection import one_line
from ringlet.strategy.replica.replica_context import merge_alone
from ringlet.strategy.replica.replica_threads import Crew
from ringlet.strategy.replica.step_execution import ReplicaRun
from ringlet.strategy.replica.watchdog import call_later

if TYPE_CHECKING:
    from ringlet.collectives import Member
    from ringlet.strategy.api.cross_device_ops import CrossDeviceOps
    from ringlet.strategy.api.strategy import Strategy
    from ringlet.strategy.multi_worker.worker_group import Workers

__all__ = ["SingleRun", "WorkerRun", "WorkerShapes"]

_COLLECTIVE = "a collective"
_MERGE_CALL = "merge_call"
# How long a replica that has failed looks again whether another one waits for it.
_FIRST_LOOK_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5


class WorkerShapes(Shapes):
    """The structures that replicas give to their collectives, where some are in other processes.

    Within a process they are compared at every call. Those of several processes are compared when a structure is new:
    a replica tells it in a call of its own, which is another one in a process that gives another structure.

    Parameters
    ----------
    num_replicas : int
        Of this process.
    workers : Workers
    """

    __slots__ = ("_workers",)

    def __init__(self, num_replicas: int, workers: Workers) -> None:
        super().__init__(num_replicas)
        self._workers = workers

    def state(self, replica: int, shape: Any) -> None:
        """Say what a replica is about to combine, to other processes too if they have not seen it from here."""
        super().state(replica, shape)
        if shape is not LEAF:
            self._workers.agree_one(replica, [shape])


class SingleRun:
    """A run of the one replica of a worker, in the thread that called ``run``.

    Parameters
    ----------
    strategy : Strategy
    workers : Workers
    ops : CrossDeviceOps
    writable_results : bool
    """

    def __init__(self, strategy: Strategy, workers: Workers, ops: CrossDeviceOps, writable_results: bool) -> None:
        self.strategy = strategy
        self.workers = workers
        self.ops = ops
        self.writable_results = writable_results
        self.is_plain = not writable_results and workers.is_plain
        self.first_replica = workers.first_rank
        self.shapes = WorkerShapes(1, workers)
        self.ended = [False]

    members: Sequence[Member] = ()
    # It has no helper that could be left behind.
    is_given_up = False

    def begin_collective(self) -> None:
        """State that the replica is about to call the group of all replicas."""
        if self.ended[0]:
            refuse_stale()
        member = self.workers.member(0)
        if not self.members:
            member._core.begin_series()
            self.members = (member,)

    def end(self) -> None:
        """State that the replica has ended."""
        self.ended[0] = True
        if self.members:
            self.members[0]._core.end_series()

    def asked_of(self, options: Any) -> CallOptions:
        """Read what the options of one collective ask for."""
        return self.workers.asked_of(options)

    def abort(self, reason: str) -> None:
        """End the collective that replicas wait in."""
        self.workers.abort(f"gave up: {reason}")

    def merge_call(
        self,
        replica: int,
        merge_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        name: str = "merge_call",
    ) -> Any:
        """Call `merge_fn` for the one replica of this process."""
        return merge_alone(self.strategy, merge_fn, args, kwargs)


class WorkerRun(ReplicaRun):
    """A run of several replicas of a worker.

    Takes what :class:`ReplicaRun` takes. The replicas of this process have a group of their own, in which they meet for
    a ``merge_call``; it hears when one of them ends. Of the group of all replicas it does not, because what ends here
    says nothing about the next run. So a replica that ends looks whether another one of this process waits for it in a
    call of that group, and ends the group then: nobody could ever go on.
    """

    def __init__(
        self, strategy: Strategy, crew: Crew, ops: CrossDeviceOps, first_replica: int, writable_results: bool = False
    ) -> None:
        super().__init__(strategy, crew, ops, first_replica, writable_results)
        workers = strategy.extended._workers
        self.workers: Workers = workers
        self.is_plain = self.is_plain and workers.is_plain
        count = workers.num_local
        # How many calls each replica has come to, and what each of these calls is.
        self._entered = [0] * count
        self._kinds: list[str] = []
        self._is_in_series = [False] * count
        self.__dict__["shapes"] = WorkerShapes(count, workers)

    def begin_collective(self) -> None:
        """State that a replica is about to call the group of all replicas."""
        self.use_group()
        replica = context.current().local_replica_id  # type: ignore[union-attr]  # a replica calls
        assert replica is not None
        self.members = self.workers.members()  # before it enters: a group that is not there yet cannot be ended
        self._enter(replica, _COLLECTIVE)
        member = self.workers.member(replica)
        if not self._is_in_series[replica]:
            self._is_in_series[replica] = True
            member._core.begin_series()

    def asked_of(self, options: Any) -> CallOptions:
        """Read what the options of one collective ask for."""
        return self.workers.asked_of(options)

    def abort(self, reason: str) -> None:
        """End the collective that replicas wait in."""
        super().abort(reason)
        self.workers.abort(f"gave up: {reason}")

    def merge_call(
        self,
        replica: int,
        merge_fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        name: str = "merge_call",
    ) -> Any:
        """Call `merge_fn` once for the replicas of this process."""
        self._enter(replica, _MERGE_CALL)
        return super().merge_call(replica, merge_fn, args, kwargs, name)

    def _merge(self) -> Any:
        with self.workers.turn.lent():
            return super()._merge()

    def _enter(self, replica: int, kind: str) -> None:
        wrong = self._what_is_wrong(replica, kind)
        if wrong is None:
            return
        if self.workers.failure is not None:  # then that is what every call raises, whatever else is wrong with it
            self.workers.members()[replica].barrier()
        raise wrong

    def _what_is_wrong(self, replica: int, kind: str) -> Exception | None:
        """Take note that a replica comes to its next call; tell why it must not make it, if so."""
        for other, error in tuple(self._failures.items()):  # it will never come: the others need not be disturbed
            return CollectiveAborted(f"{self._name(other)} raised {one_line(error)}")
        number = self._entered[replica] = self._entered[replica] + 1
        if len(self._kinds) < number:
            self._kinds.append(kind)
        elif self._kinds[number - 1] != kind:
            text = (
                f"its replicas did not make the same call (call {number} of this run): {self._name(replica)} {kind}, "
                f"another one {self._kinds[number - 1]}. Make the same calls in the same order on every replica"
            )
            self.workers.abort(f"cannot go on: {text}")
            return CollectiveMismatchError(text)
        for other, has_ended in enumerate(self.ended):
            if has_ended and self._entered[other] < number:
                if kind == _COLLECTIVE:  # whether it comes before or after the other one has ended must not matter
                    self._abandon(other, replica, "has returned")
                return CollectiveMismatchError(
                    f"{self._name(other)} has ended after {self._entered[other]} calls, and {self._name(replica)} "
                    f"makes call {number}, {kind}. Make the same calls in the same order on every replica"
                )
        return None

    def _name(self, replica: int) -> str:
        return f"replica {self.first_replica + replica}" if replica >= 0 else "the thread that called strategy.run"

    def _fail(self, replica: int, error: BaseException) -> None:
        super()._fail(replica, error)
        self._release(replica, error)

    def _leave(self, replica: int) -> None:
        self.ended[replica] = True
        if self._is_in_series[replica]:
            self.members[replica]._core.end_series()
        self._release(replica, self._failures.get(replica))
        super()._leave(replica)

    def _release(self, replica: int, error: BaseException | None) -> None:
        """End the group of all replicas if one of this process waits there for a replica that ends."""
        what = "has returned" if error is None else f"raised {one_line(error).rstrip('.')}"
        mine = self._entered[replica] if replica >= 0 else -1
        for other, number in enumerate(self._entered):
            if other == replica or self.ended[other] or not number or self._kinds[number - 1] != _COLLECTIVE:
                continue
            if number > mine:
                self._abandon(replica, other, what)
            elif error is not None and number == mine:
                self._look_later(replica, other, what, _FIRST_LOOK_SECONDS)

    def _look_later(self, replica: int, other: int, what: str, seconds: float) -> None:
        """Both came to one call, and one of them failed: if it has not made it, the other one waits in vain."""
        if self.ended[other] or self.crew.work is not self or not self.workers.is_joined:
            return
        members = self.workers.members()
        if members[other]._core.calls > members[replica]._core.calls:
            self._abandon(replica, other, what)
        else:
            pause = min(2 * seconds, _LONGEST_PAUSE_SECONDS)
            call_later(seconds, lambda: self._look_later(replica, other, what, pause))

    def _abandon(self, replica: int, other: int, what: str) -> None:
        who = self._name(replica)
        self.workers.abort(f"cannot go on: {who} {what}, and {self._name(other)} waits for it in a collective")

    def _raise_first(self) -> NoReturn:
        # Of a failure of the group all replicas tell, in different words.
        told: set[type[BaseException]] = set()
        for replica, error in sorted(self._failures.items()):
            self.workers.explain(error)
            if self.workers.is_of_group(error):
                if type(error) in told:
                    del self._failures[replica]
                told.add(type(error))
        super()._raise_first()

    def _raise_deadline(self, timeout_seconds: float) -> NoReturn:
        self.workers.abort(f"gave up: its replicas have not ended within {timeout_seconds:g} s")
        super()._raise_deadline(timeout_seconds)
