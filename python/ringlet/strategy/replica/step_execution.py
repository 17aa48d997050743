"""One run of a step function on the replicas of this process."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ringlet import context
from ringlet.errors import CollectiveMismatchError, DeadlineExceededError
from ringlet.errors.exception_notes import add_note
from ringlet.strategy.calls.call_options import CallOptions, read_options
from ringlet.strategy.calls.context_checks import refuse_stale
from ringlet.strategy.calls.structure_agreement import Shapes
from ringlet.strategy.replica.error_selection import one_line, other_failures, primary_failure
from ringlet.strategy.replica.gil_contention_warning import HAS_INTERPRETER_LOCK
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.strategy.replica.replica_threads import NO_WORK, ReplicaThreads, fork_count
from ringlet.values import check_components, regroup, select_replica

if TYPE_CHECKING:
    from ringlet.collectives import Member
    from ringlet.strategy.api.cross_device_ops import CrossDeviceOps
    from ringlet.strategy.api.strategy import Strategy

_log = logging.getLogger(__name__)

# np.errstate is a context variable from NumPy 2 on, and thread-local before.
_CONTEXTS_CARRY_ERRSTATE = int(np.__version__.partition(".")[0]) >= 2
# Maximum time that a run waits for its replicas after Ctrl-C, and after a call of a replica has timed out: replicas
# in a collective end within milliseconds.
_GRACE_SECONDS = 0.1
# Interval at which a calling thread that waits checks whether replicas have ended or failed.
_CHECK_SECONDS = 0.1
# Key of the calling thread's own failure among the replicas' failures.
_CALLER = -1
# Messages of NumPy's errors for writes to read-only arrays.
_READ_ONLY = ("assignment destination is read-only", "output array is read-only")


def _no_function() -> None:
    """Placeholder for the function of a finished run."""


class ReplicaRun:
    """One run of a step function: executes replicas, and keeps their results and failures.

    A run has exclusive use of `threads` until it has ended. With `writable_results`, ``all_reduce`` returns a separate
    array to each replica.
    """

    def __init__(
        self,
        strategy: Strategy,
        threads: ReplicaThreads,
        ops: CrossDeviceOps,
        first_replica: int,
        writable_results: bool = False,
    ) -> None:
        self.strategy = strategy
        self.threads = threads
        self.ops = ops
        self.writable_results = writable_results
        self.is_plain = ops._is_core and not writable_results
        self.first_replica = first_replica
        self._failures: dict[int, BaseException] = {}
        self._merge_calls: dict[int, Any] = {}
        self._merging = threading.Lock()

    _fn: Callable[..., Any]
    _rows: Sequence[Sequence[Any]]
    _keywords: Sequence[Mapping[str, Any]]
    _contexts: list[contextvars.Context]
    _results: list[Any]
    _errors: Any

    shapes: Shapes
    """Structures that replicas pass to their collectives, compared here because the core sees flat lists of arrays."""

    members: Sequence[Member]
    """Ranks of this process's replicas in the group that combines their values."""

    ended: list[bool]
    """Which replicas have ended; their contexts refuse calls."""

    # Whether the calling thread runs replicas; otherwise helpers run all of them.
    caller_runs = True
    # Whether replicas that have not started are skipped, and replicas that map batches take no further batch.
    is_stopping = False
    # Number of rows of arguments that look like a global batch passed to every replica. It is reset to 0 if a replica
    # reads its id, because that replica may select its own rows, or if a replica reduces an argument, because that
    # argument is not a batch.
    whole_batch = 0
    # Whether a replica has used the group in this run; if so, replicas that end must leave it. Always true without
    # the GIL, because each of two threads may then miss the other's last write.
    _uses_group = not HAS_INTERPRETER_LOCK
    # The result or the exception of the last merge_call.
    _merged: Any = None
    _merge_error: Exception | None = None
    # Replicas that have not taken their part of the merge_call's result.
    _pending: set[int]

    def drive(
        self,
        fn: Callable[..., Any],
        rows: Sequence[Sequence[Any]],
        keywords: Sequence[Mapping[str, Any]],
        timeout_seconds: float,
    ) -> list[Any]:
        """Run all replicas and return their results; the calling thread may run replicas that no thread has claimed.

        `rows` and `keywords` hold the arguments of each replica; the time-out limits the wait for helpers.
        """
        self._fn, self._rows, self._keywords = fn, rows, keywords
        self._contexts = [contextvars.copy_context() for _ in rows]
        self._results = results = [None] * len(rows)
        self.ended = [False] * len(rows)
        if self._uses_group:
            self.__dict__.setdefault("shapes", Shapes(len(rows)))
        self._errors = None if _CONTEXTS_CARRY_ERRSTATE else np.geterr()
        self._modes = torch_modes()
        forks = fork_count()
        try:
            num_mine = self._claim_all()
            _refuse_child(forks)
            is_finished = num_mine == len(rows) or self._wait(timeout_seconds)
        except BaseException as error:  # usually KeyboardInterrupt
            _refuse_child(forks)
            is_finished = self._unwind(error)
        if not is_finished:
            if self._is_interrupted():
                self._leave_running()
            self._raise_timeout(timeout_seconds)
        self.threads.work = NO_WORK
        self._clear()
        if self._failures:
            self._raise_failure()
        return results

    def execute(self, replica: int) -> None:
        """Run one replica to its end, in this thread."""
        try:
            if not self.is_stopping:
                self._results[replica] = self._contexts[replica].run(self._call, replica)
        except BaseException as error:
            self._fail(replica, error)
        finally:
            self._finish(replica)

    @property
    def is_abandoned(self) -> bool:
        """Whether the run has raised an error while replicas were busy."""
        return self.threads.is_abandoned

    def use_group(self) -> None:
        """Record that a replica is about to call the group: from then on, replicas that end depart from it.

        Runs that never call the group, such as a map over replicas, avoid the cost of departing.
        """
        if not self._uses_group:
            if self.threads.work is not self:  # the calling thread has outlived its run
                refuse_stale()
            # setdefault: several replicas may run this at once, and share one object.
            self.__dict__.setdefault("shapes", Shapes(len(self.ended)))
            self._uses_group = True
            self.threads.claims.summon_all()
            for replica, has_ended in enumerate(self.ended):
                if has_ended:
                    self.threads.depart(replica)

    # Runs before each collective of a replica; overridden by runs whose group spans processes.
    begin_collective = use_group

    def call_options(self, options: Any) -> CallOptions:
        """Parse the options of one collective."""
        return read_options(options, self.ops.algorithm)

    def abort(self, reason: str) -> None:
        """Abort the collectives in which replicas wait."""
        self.threads.group.abort(reason)

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
        """Implement :meth:`ReplicaContext.merge_call`; mismatch errors contain `name`.

        Replica 0 runs `merge_fn` between two barriers. With `any_thread`, the last replica to call runs it before the
        only barrier, which saves a GIL hand-over.
        """
        self.use_group()
        with self._merging:
            self._merge_calls[replica] = (name, merge_fn, args, kwargs)
            is_last = len(self._merge_calls) == len(self._rows)
        if any_thread and is_last and self.threads.group.failure is None:
            self._merge_all()
        self._barrier(replica, name)
        if any_thread:
            self._merge_calls.pop(replica, None)  # left by a call that Ctrl-C interrupted and the step repeated
        else:
            if replica == 0:
                self._merge_all()
            self._barrier(replica, f"the end of {name}")
        # The result cannot change here: the next merge_call replaces it only once all replicas have made that call.
        if self._merge_error is not None:
            raise self._merge_error
        merged = select_replica(replica, self._merged)
        # The last replica to take its part clears the result.
        self._pending.discard(replica)
        if not self._pending:
            self._merged = None
        return merged

    def _call(self, replica: int) -> Any:
        context.enter(ReplicaContext._of_run(self, replica))
        if self._errors is not None:
            np.seterr(**self._errors)
        if self._modes is not None:
            with self._modes():
                return self._fn(*self._rows[replica], **self._keywords[replica])
        return self._fn(*self._rows[replica], **self._keywords[replica])

    def _finish(self, replica: int) -> None:
        # use_group accesses these attributes in the opposite order, so that under the GIL at least one of
        # the two threads sees the other's write.
        self.ended[replica] = True
        if self._uses_group:
            self.threads.depart(replica)
        self.threads.claims.finish(replica)

    def _fail(self, replica: int, error: BaseException) -> None:
        self._failures[replica] = error
        self.is_stopping = True
        self.threads.group.abort(f"replica {replica} raised {one_line(error)}" if replica >= 0 else one_line(error))

    def _claim_all(self) -> int:
        """Run replicas in this thread until all are claimed, and return their number.

        If only helpers run replicas, wait until one has ended, and return 0.
        """
        claims = self.threads.claims
        replica = -1
        num_mine = 0
        try:
            self.threads.prepare(self, self.caller_runs)
            self.members = self.threads.members
            claims.open()
            if not self.caller_runs:
                claims.summon_all()
                # The time-out begins when the first replica has returned, as if this thread had run that replica.
                while not claims.wait_finished(_CHECK_SECONDS) and not any(self.ended):
                    pass
                return 0
            # Python handles no signal between a claim and the assignment to `replica`.
            for replica in iter(claims.claim, -1):
                self.execute(replica)
                num_mine += 1
        except BaseException as error:  # Ctrl-C may interrupt between any two instructions of this file
            self._fail(_CALLER, error)
            if replica in claims.running():  # an interrupted _finish may be repeated
                self._finish(replica)
            raise
        return num_mine

    def _is_interrupted(self) -> bool:
        return any(
            replica == _CALLER or isinstance(error, KeyboardInterrupt)
            for replica, error in list(self._failures.items())
        )

    def _has_timed_out(self) -> bool:
        """Return whether a replica has timed out in a call while it waited for other replicas."""
        failure = self.threads.group.failure
        return failure is not None and any(
            isinstance(error, DeadlineExceededError) and failure in str(error)
            for error in list(self._failures.values())
        )

    def _wait(self, timeout_seconds: float) -> bool:
        """Wait for all replicas to end, and return whether they have; log which still run if the wait is long.

        After an interrupt, or a time-out of a replica that waited for others, it waits at most _GRACE_SECONDS more.
        Both may be recorded after this wait has begun, so each check looks at the failures again.
        """
        claims, stall_seconds = self.threads.claims, self.threads.stall_seconds
        now = time.monotonic()
        end, log_at, is_given_up = now + timeout_seconds, now + stall_seconds, False
        while now < end:
            if not is_given_up and self._failures and (self._is_interrupted() or self._has_timed_out()):
                is_given_up, end = True, now + _GRACE_SECONDS
            if claims.wait_finished(max(0.0, min(_CHECK_SECONDS, end - now, log_at - now))):
                return True
            now = time.monotonic()
            if now >= log_at:
                log_at = math.inf
                where = self.threads.describe_running(self.first_replica)
                _log.warning("strategy.run has waited %g s for replicas to return: %s", stall_seconds, where)
        return False

    def _unwind(self, error: BaseException) -> bool:
        """Stop a run after an exception in the calling thread; return whether all replicas have ended."""
        claims = self.threads.claims
        self._fail(_CALLER, error)  # replicas in a collective now raise an error
        for unclaimed in iter(claims.claim, -1):
            self._finish(unclaimed)
        # If Ctrl-C interrupted the run before its claims were opened, no replica runs, so none would ever finish.
        return not claims.running() or claims.wait_finished(_GRACE_SECONDS)

    def _leave_running(self) -> NoReturn:
        """Raise the exception that interrupted the run, and report the replicas that are still running."""
        where = self.threads.describe_running(self.first_replica)
        call = "strategy.run" if self.caller_runs else "map"
        self.abort(f"{call} was interrupted")
        with contextlib.suppress(Exception):  # stderr may be closed
            print(
                f"ringlet: {call} was interrupted while {where}; this strategy is usable again once these "
                "replicas have returned",
                file=sys.stderr,
                flush=True,
            )
        self._raise_failure()

    def _raise_timeout(self, timeout_seconds: float) -> NoReturn:
        num_running = len(self.threads.claims.running())
        where = self.threads.describe_running(self.first_replica)
        if self._has_timed_out():
            usable = f"{where}; this strategy is usable again once these replicas have returned"
            add_note(primary_failure(self._failures)[1], usable)
            self._raise_failure()
        text = (
            f"strategy.run waited {timeout_seconds:g} s for {num_running} of {len(self._results)} replicas to return: "
            f"{where}. Allow more time with RINGLET_TIMEOUT_SECONDS (0: no limit); this strategy is usable again once "
            "these replicas have returned"
        )
        self.threads.group.abort(text)
        raise DeadlineExceededError(text) from (primary_failure(self._failures)[1] if self._failures else None)

    def _clear(self) -> None:
        """Drop arguments and results: they may contain replica contexts, which refer to this run."""
        self._fn = _no_function
        self._rows, self._keywords, self._results = [], [], []
        self._contexts.clear()
        self._merge_calls.clear()
        self._merged = self._merge_error = None

    def _raise_failure(self) -> NoReturn:
        replica, error = primary_failure(self._failures)
        if replica != _CALLER:
            first = self.first_replica  # replicas are numbered over all processes
            others = other_failures({first + i: each for i, each in self._failures.items() if i >= 0}, first + replica)
            if isinstance(error, ValueError) and str(error) in _READ_ONLY:
                add_note(error, "if replicas share this array, write g = g * 0.5, not g *= 0.5, or copy it")
            add_note(error, f"raised in replica {first + replica} of {self.strategy.num_replicas_in_sync}{others}")
        # Break reference cycles: the traceback refers to this frame and to this run.
        self._failures = {}
        try:
            raise error
        finally:
            del error

    def _barrier(self, replica: int, name: str) -> None:
        try:
            self.threads.members[replica].barrier(name)
        except BaseException as error:
            self._merge_calls.pop(replica, None)
            if isinstance(error, CollectiveMismatchError) and "did not make the same call" not in str(error):
                raise CollectiveMismatchError(  # otherwise the core's message already lists the calls
                    f"Some replicas made a different number of replica_context().merge_call() calls: {error}"
                ) from error
            raise

    def _merge_all(self) -> None:
        calls: list[Any] = [self._merge_calls.get(replica) for replica in range(len(self._rows))]
        if None in calls or len({name for name, *_ in calls}) > 1:
            return  # the next barrier raises the group's error, or an error that lists the calls
        self._merge_calls.clear()
        self._pending = set(range(len(self._rows)))
        try:
            self._merged, self._merge_error = self._merge(calls), None
        except Exception as error:
            self._merge_error = error
        except BaseException as error:  # a step function may handle Ctrl-C; the others must not wait for it
            self.threads.group.abort(one_line(error))
            raise

    def _merge(self, calls: Sequence[Any]) -> Any:
        merge_fn = calls[0][1]
        args = regroup([tuple(args) for _, _, args, _ in calls])
        kwargs = regroup([dict(kwargs) for *_, kwargs in calls]) if any(call[3] for call in calls) else {}
        merged = context.call_in(context.Mode(self.strategy), merge_fn, self.strategy, *args, **kwargs)
        check_components(merged, len(self._rows), "merge_fn returned")
        return merged


def _refuse_child(forks: int) -> None:
    if fork_count() != forks:
        raise RuntimeError(
            "a child process, forked in a step function, returned into strategy.run, but the other replicas are in the "
            "parent: end the child inside the step function, with os._exit"
        )


def torch_modes() -> Callable[[], contextlib.ExitStack] | None:
    """Return a function that enters the calling thread's modes in another thread; None if they are the defaults.

    PyTorch keeps gradient, inference and autocast modes for each thread. Without the caller's modes, results would
    depend on the thread that runs a replica.
    """
    torch: Any = sys.modules.get("torch")
    # PyTorch may not be imported, or its import may be in progress.
    if torch is None or not hasattr(torch, "get_autocast_dtype"):
        return None
    has_gradients, is_inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    is_autocast = torch.is_autocast_enabled("cpu")
    if has_gradients and not is_inference and not is_autocast:
        return None
    dtype, is_cached = torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()

    def enter() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.enter_context(torch.inference_mode(is_inference))
        stack.enter_context(torch.set_grad_enabled(has_gradients))
        stack.enter_context(torch.autocast("cpu", dtype=dtype, enabled=is_autocast, cache_enabled=is_cached))
        return stack

    return enter
