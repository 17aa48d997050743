"""The worker group of a strategy that spans several processes, and the calls that all workers make together."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Algorithm, CommunicationOptions, Member
from ringlet.collectives.process_group import job_id
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, DeadlineExceededError, WorkerLostError
from ringlet.errors.exception_notes import add_note
from ringlet.ipc.byte_framing import join_frames, split_frames
from ringlet.observe.stall_reports import translators
from ringlet.strategy.calls.call_options import CallOptions, check_options, read_options
from ringlet.strategy.calls.structure_agreement import LEAF, describe_shape
from ringlet.strategy.multi_worker.abort_on_crash import abort_on_crash
from ringlet.strategy.multi_worker.worker_handshake import Cluster, join, script_of_process
from ringlet.strategy.replica.call_on_replicas import call_on_replicas
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool

Array = NDArray[Any]
T = TypeVar("T")

_RESUME = "resuming after an exception left the strategy"
_NOTHING = np.empty(0, np.uint8)
# Patterns of ranks and call numbers in error texts of the core, which are translated for users. A translated text
# contains no ranks, so that it is not translated again.
_RANK = re.compile(r"^ {4}.*|\b(rank) (\d+)\b|\brank(?=s?\b)", re.MULTILINE)  # lines of a stack are indented by 4
_WAITING = re.compile(r", call (\d+) of rank (\d+),")
_CALL = re.compile(
    r"(\bthe ranks did not make the same call \(their call number |, call (?=\d+ of rank)"
    r"|\brank \d+ \((?:[^()]* )?after (?=\d+ calls?\)))(\d+)( calls?\))?"
)
_LOST = re.compile(r"^ranks? [^(]*\(pid")
_COMPARISON = re.compile(r"\bbarrier\('([a-z_]+ of [^\n]*) \(structure [0-9a-f]{16}\)'\)")
_SERIES = {"outside of a series": "outside of strategy.run", "of a series": "of its strategy.run"}
_OF_THE_CORE = (CollectiveMismatchError, DeadlineExceededError, WorkerLostError)
_RESTART = "Start all workers again, from the last checkpoint if there is one"

# Number of the next strategy. All workers create strategies in the same order, so a number identifies the same strategy
# on each worker.
_numbers = itertools.count(1)


class WorkerGroup:
    """The workers of one strategy: the index of this process, and their collective calls.

    The rendezvous takes place at the first call that needs the other workers. All workers make the same calls in the
    same order, outside of replicas or in a ``merge_fn``, from one thread at a time; ``timeout_seconds`` limits each
    wait.
    """

    def __init__(self, cluster: Cluster, is_chief: bool, options: CommunicationOptions) -> None:
        self.cluster = cluster
        self.is_chief = is_chief
        self.options = options
        self._defaults = read_options(dataclasses.replace(options, timeout_seconds=None), Algorithm.AUTO)
        self.num_workers, self.worker_index = cluster.num_workers, cluster.worker_index
        self.num_local, self.first_rank = cluster.num_local, cluster.first_rank
        self.is_plain = not options.bytes_per_pack
        self.single_thread = ThreadExclusion(f"the strategy of {cluster.name}")
        self._number = next(_numbers)
        script_of_process()  # recorded now: the rendezvous may take place much later
        self._thread_pool = ReplicaThreadPool(cluster.num_local)
        self._members: list[Member] | None = None
        self._joining = threading.Lock()
        self._attempts = 0
        self._last_error: BaseException | None = None
        # For each replica, the structures that were compared with the other workers.
        self._compared: list[dict[Any, None]] = [{} for _ in range(cluster.num_local)]
        # For each replica, the number of its internal calls, such as those of the handshake.
        self._num_uncounted = [0] * cluster.num_local
        # Replicas that must synchronize with all other replicas before their next call.
        self._to_resume: set[int] = set()

    @property
    def job(self) -> str:
        """An identifier of this job, equal on all its workers."""
        return hashlib.sha256(f"{self.cluster.digest()} {job_id(os.environ)}".encode()).hexdigest()[:32]

    @property
    def is_joined(self) -> bool:
        """Whether the rendezvous has taken place."""
        return self._members is not None

    # --- calls of all workers -----------------------------------------------------------------------------------------

    def barrier(self, name: str) -> None:
        """Wait until all workers have called this method with the same name."""
        self._call_uncounted(lambda _, member: member.barrier(name))

    def sum(self, number: int) -> int:
        """Return the sum of an integer over all workers."""
        mine = np.array(number, np.int64)
        none = np.array(0, np.int64)
        return int(self._call_uncounted(lambda local, member: member.all_reduce(none if local else mine))[0])

    def broadcast(self, array: Any, root: int = 0) -> Array:
        """Return the array of worker `root` on all workers, read-only; the arrays of other workers are ignored."""
        rank = root * self.num_local
        value = np.asarray(array) if self.worker_index == root else None
        result: Array = self._call_uncounted(lambda local, member: member.broadcast(None if local else value, rank))[0]
        return result

    def exchange(self, data: bytes, what: str = "") -> list[bytes]:
        """Return the data of all workers, in worker order; errors about mismatched calls contain `what`."""
        mine = np.frombuffer(join_frames([data]), np.uint8)

        def call(local: int, member: Member) -> Array:
            if what:
                member.barrier(what)
            gathered: Array = member.all_gather(_NOTHING if local else mine)
            return gathered

        return split_frames(self._call_uncounted(call)[0])

    def call_on_ranks(self, call: Callable[[int, Member], T]) -> list[T]:
        """Make a call for each replica of this process, in parallel; return the results. All workers make this call.

        The call receives the index of a replica in this process and its member of the group of all replicas.
        """
        with self.single_thread:
            try:
                self.members()
                if self.num_local == 1:
                    return [call(0, self.member(0))]
                return call_on_replicas(self._thread_pool, lambda local: call(local, self.member(local)), self.abort)
            except BaseException as error:
                self.annotate(error)
                raise

    def _call_uncounted(self, call: Callable[[int, Member], T]) -> list[T]:
        """Make an internal call like `call_on_ranks`; the call numbers in messages do not include it."""

        def uncounted(local: int, member: Member) -> T:
            with self._not_counting(local):
                return call(local, member)

        return self.call_on_ranks(uncounted)

    @contextlib.contextmanager
    def _not_counting(self, local: int) -> Iterator[None]:
        core = self.members()[local]._core
        before = core.calls
        yield
        self._num_uncounted[local] += core.calls - before

    def check_structures(self, shapes: Sequence[Any], call: str) -> None:
        """Check that all workers pass the same structures to `call`; single leaves and known structures are skipped."""
        if not self._is_compared(0, tuple(shapes)):
            self.call_on_ranks(lambda local, _: self.check_structures_of(local, shapes, call))

    def check_structures_of(self, local: int, shapes: Sequence[Any], call: str) -> None:
        """Perform :meth:`check_structures` for one replica; all replicas of this process call this method."""
        key = tuple(shapes)
        if self._is_compared(local, key):
            return
        text = "; ".join(describe_shape(shape) for shape in shapes)
        compared = self._compared[local]
        if text not in compared:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            with self._not_counting(local):
                paths = "; ".join(describe_shape(shape) for shape in shapes if shape != LEAF)
                self.members()[local].barrier(f"{call} of the leaves {paths} (structure {digest})")
            compared[text] = None
        compared[key] = None

    def _is_compared(self, local: int, key: tuple[Any, ...]) -> bool:
        return key in self._compared[local] or all(shape == LEAF for shape in key)

    # --- options ------------------------------------------------------------------------------------------------------

    def call_options(self, options: Any) -> CallOptions:
        """Parse the options of one call, merged with the strategy's options except for their time-out."""
        if options is None:
            return self._defaults
        check_options(options)
        merged = self.options.merge(options)
        return read_options(dataclasses.replace(merged, timeout_seconds=options.timeout_seconds), Algorithm.AUTO)

    # --- ranks --------------------------------------------------------------------------------------------------------

    def members(self) -> list[Member]:
        """Return the members of this process in the group of all replicas; the first call performs the rendezvous."""
        if self._members is None:
            before = self._attempts
            with self._joining:
                if self._members is None:
                    self._join(before)
        return self._members  # type: ignore[return-value]  # set by _join

    def _join(self, before: int) -> None:
        # Several replicas may call this concurrently; they share the outcome of one attempt.
        if self._attempts != before and self._last_error is not None:
            raise copy.copy(self._last_error)
        try:
            members = join(self.cluster, self._number, resolve_timeout(self.options.timeout_seconds))
            self._num_uncounted = [member._core.calls for member in members]
            self._members = members
            translators.add(self)
        except BaseException as error:
            self._last_error = error.with_traceback(None)
            raise
        finally:
            self._attempts += 1
        abort_on_crash(self)

    def member(self, local: int) -> Member:
        """Return the member of one replica for its next call; after an exception, synchronize with all replicas first.

        One worker may have raised the exception and another not. Without the barrier, the next calls of these workers
        would be matched with each other.
        """
        members = self.members()
        if self._to_resume and local in self._to_resume:
            with self._not_counting(local):
                members[local].barrier(_RESUME)
            self._to_resume.discard(local)
        return members[local]

    # --- failures -----------------------------------------------------------------------------------------------------

    def abort(self, reason: str) -> None:
        """Abort the group of all replicas, in all processes; `reason` is a predicate whose subject is this worker."""
        if self._members is not None:
            text = f"{self.cluster.name} (pid {os.getpid()}) {reason}. {_RESTART}"
            self._members[0]._core.group.abort(text)

    @property
    def failure(self) -> str | None:
        """The reason why the group has failed; None if it has not failed."""
        return None if self._members is None else self._members[0]._core.group.failure

    def annotate(self, error: BaseException) -> None:
        """Prepare for calls after an exception that the strategy raises.

        If the group has failed, the text of the exception names workers instead of ranks, and a note adds the remedy.
        """
        self._to_resume = set(range(self.num_local))
        for compared in self._compared:
            compared.clear()  # compare again: another worker's comparison may have been interrupted
        if self.failure is None:
            return
        # Ctrl-C may interrupt the handling of an error that another worker's Ctrl-C has caused.
        for link in (error, error.__context__) if isinstance(error, KeyboardInterrupt) else (error,):
            if link is not None and self.is_group_failure(link):
                link.args = (self._translated(link, link.args[0]), *link.args[1:])
        if isinstance(error, KeyboardInterrupt):  # the note names the workers that had not made the call
            add_note(error, self._translated(error, self.failure))
        if not re.search("again|make the same calls", str(error)):
            add_note(error, f"this strategy is unusable on every worker. {_RESTART}")

    def is_group_failure(self, error: BaseException) -> bool:
        """Return whether the text of an exception is the core's message about the failure of the group."""
        if self.failure is None or not error.args or not isinstance(error.args[0], str):
            return False
        # Workers that abort the group supply the text themselves.
        is_call = isinstance(error, CollectiveAborted) and not self.failure.startswith("/job:")
        return isinstance(error, _OF_THE_CORE) or (is_call and error.args[0].startswith(self.failure))

    def as_in_errors(self, report: str) -> str:
        """Translate a report of a long wait in the same way as errors, if it concerns a current call of this group."""
        waiting = _WAITING.search(report)
        if waiting is None or not self.single_thread._holder:
            return report
        calls = [member._core.calls if member.rank == int(waiting[2]) else 0 for member in self.members()]
        return self._translated(None, report) if int(waiting[1]) in calls else report

    def _translated(self, error: BaseException | None, text: str) -> str:
        """Replace the ranks in a message of the core with the names of workers and replicas."""
        if isinstance(error, WorkerLostError) and 0 <= error.rank < self.cluster.num_ranks:
            text = _LOST.sub(f"{self.cluster.names[error.rank // self.num_local]} (pid", text, count=1)
        for core_term, term in _SERIES.items():
            text = text.replace(core_term, term)
        text = _COMPARISON.sub(r"\1", text)
        text = _CALL.sub(self._renumbered, text)
        return _RANK.sub(self._name_of_rank, text)

    def _renumbered(self, match: re.Match[str]) -> str:
        number = max(int(match[2]) - self._num_uncounted[0], 0)
        unit = "" if match[3] is None else " call)" if number == 1 else " calls)"
        return f"{match[1]}{number}{unit}"

    def _name_of_rank(self, match: re.Match[str]) -> str:
        if match[0].startswith(" "):
            return match[0]
        if match[1] is None:
            return "worker" if self.num_local == 1 else "replica"
        rank = int(match[2])
        if rank >= self.cluster.num_ranks:
            return match[0]
        name = self.cluster.names[rank // self.num_local]
        return name if self.num_local == 1 else f"replica {rank} ({name})"

    def __deepcopy__(self, memo: dict[int, Any]) -> WorkerGroup:
        return WorkerGroup(self.cluster, self.is_chief, self.options)


class ThreadExclusion:
    """A re-entrant context manager for one thread at a time.

    Another thread that enters gets an error, because the order of calls of several threads is undefined.
    """

    __slots__ = ("_depth", "_holder", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._holder: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> ThreadExclusion:
        me = threading.get_ident()
        # One atomic operation, so that only one of two concurrent threads succeeds.
        holder = self._holder.setdefault("thread", me)
        if holder != me:
            raise RuntimeError(
                f"two threads use {self._what} at the same time, {_name(me)!r} and {_name(holder)!r}: all workers must "
                "make their calls in the same order, but the order of concurrent threads is undefined. Make these "
                "calls from one thread, or create a strategy for each thread, in the same order on every worker"
            )
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._depth = 0
            self._holder.clear()

    @contextmanager
    def transferred(self) -> Iterator[None]:
        """Make the calling thread the holder until the block ends; the previous holder waits."""
        holder = self._holder.get("thread")
        if holder is None:
            raise AssertionError("no thread holds the strategy")
        self._holder["thread"] = threading.get_ident()
        try:
            yield
        finally:
            self._holder["thread"] = holder


def _name(thread: int) -> str:
    found = next((each.name for each in threading.enumerate() if each.ident == thread), None)
    return found or f"thread {thread}"
