"""The workers of a strategy that has several processes, as one of them sees them, and the calls they make together."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Algorithm, CommunicationOptions, Member
from ringlet.collectives.process_group import job_id
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, DeadlineExceededError, WorkerLostError
from ringlet.strategy.api.call_options import CallOptions, check_options, read_options
from ringlet.strategy.api.structure_agreement import LEAF, describe_shape
from ringlet.strategy.multi_worker.byte_framing import pack, unpack
from ringlet.strategy.multi_worker.crash_broadcast import say_last_words
from ringlet.strategy.multi_worker.thread_exclusion import Turn
from ringlet.strategy.multi_worker.worker_handshake import Cluster, join, script_of_process
from ringlet.strategy.replica.error_selection import add_note
from ringlet.strategy.replica.parallel_call import call_everywhere
from ringlet.strategy.replica.replica_threads import CrewPool

__all__ = ["Workers"]

Array = NDArray[Any]
T = TypeVar("T")

_RESUME = "go on after an exception left the strategy"
_NOTHING = np.empty(0, np.uint8)
# How the core names what has other names here, in errors whose text is its own.
_RANK = re.compile(r"\b(rank) (\d+)\b|\brank(?=s?\b)")
_LOST = re.compile(r"^ranks? [^(]*\(pid")
_SERIES = {"outside of a series": "outside of strategy.run", "of a series": "of its strategy.run"}
_OF_THE_CORE = (CollectiveMismatchError, DeadlineExceededError, WorkerLostError)
_RESTART = "Start all workers again, from the last checkpoint if there is one"

# Which strategy of the program comes next: every worker counts alike, so that each meets its own kind.
_numbers = itertools.count(1)


class Workers:
    """The workers of one strategy: which of them this process is, and what all of them do together.

    It joins the others when it is first asked for something that needs them. Every worker makes the same calls in the
    same order, outside of replicas or in a ``merge_fn``, and by one thread at a time.

    Parameters
    ----------
    cluster : Cluster
        Which workers there are.
    is_chief : bool
        Whether this is the one that speaks for all.
    options : CommunicationOptions
        What holds for every call that says nothing else; its ``timeout_seconds`` is how long to wait for the others,
        when joining and in each call.

    Attributes
    ----------
    num_workers, worker_index : int
        How many processes there are, and which of them this is.
    num_local, first_rank : int
        How many replicas each of them has, and which of all replicas is the first one of this process.
    is_plain : bool
        Whether calls that say nothing else go without passes.

    Examples
    --------
    >>> cluster = Cluster((("worker", 0, "localhost:1"), ("worker", 1, "localhost:2")), worker_index=1, num_local=2)
    >>> workers = Workers(cluster, False, CommunicationOptions(timeout_seconds=60.0))
    >>> workers.num_workers, workers.worker_index, workers.first_rank, workers.is_joined
    (2, 1, 2, False)
    """

    def __init__(self, cluster: Cluster, is_chief: bool, options: CommunicationOptions) -> None:
        self.cluster = cluster
        self.is_chief = is_chief
        self.options = options
        self._asked = read_options(dataclasses.replace(options, timeout_seconds=None), Algorithm.AUTO)
        self.num_workers, self.worker_index = cluster.num_workers, cluster.worker_index
        self.num_local, self.first_rank = cluster.num_local, cluster.first_rank
        self.is_plain = not options.bytes_per_pack
        self.turn = Turn(f"the strategy of {cluster.name}")
        self._number = next(_numbers)
        script_of_process()  # for when they meet, which may be much later
        self._crews = CrewPool(cluster.num_local)
        self._members: list[Member] | None = None
        self._joining = threading.Lock()
        self._attempts = 0
        self._last_error: BaseException | None = None
        # The structures that each replica has told the other workers of.
        self._told: list[dict[Any, None]] = [{} for _ in range(cluster.num_local)]
        # The replicas that must first see whether all others go on as well.
        self._to_resume: set[int] = set()

    @property
    def job(self) -> str:
        """A text that is the same on all of them, and on no worker of another job."""
        return hashlib.sha256(f"{self.cluster.digest()} {job_id(os.environ)}".encode()).hexdigest()[:32]

    @property
    def is_joined(self) -> bool:
        """Whether the workers have met."""
        return self._members is not None

    # --- calls of all workers -----------------------------------------------------------------------------------------

    def barrier(self, name: str) -> None:
        """Wait until all workers have come here.

        Parameters
        ----------
        name : str
            The same on all of them.
        """
        self.together(lambda _, member: member.barrier(name))

    def sum(self, number: int) -> int:
        """Give the sum of an integer over all workers."""
        mine = np.array(number, np.int64)
        none = np.array(0, np.int64)
        return int(self.together(lambda local, member: member.all_reduce(none if local else mine))[0])

    def broadcast(self, array: Any, root: int = 0) -> Array:
        """Give every worker the array of one.

        Parameters
        ----------
        array : array-like
            Of a dtype that collectives take; what other workers than the root give is not looked at.
        root : int
            The worker that sends.

        Returns
        -------
        ndarray
            Read-only.
        """
        rank = root * self.num_local
        value = np.asarray(array) if self.worker_index == root else None
        result: Array = self.together(lambda local, member: member.broadcast(None if local else value, rank))[0]
        return result

    def exchange(self, data: bytes, what: str = "") -> list[bytes]:
        """Give every worker what each of them brings, in their order.

        Parameters
        ----------
        data : bytes
        what : str
            What they do it for, such as ``"making a variable"``: shown to those that do something else.
        """
        mine = pack(data)

        def call(local: int, member: Member) -> Array:
            if what:
                member.barrier(what)
            gathered: Array = member.all_gather(_NOTHING if local else mine)
            return gathered

        return unpack(self.together(call)[0])

    def together(self, call: Callable[[int, Member], T]) -> list[T]:
        """Make one call of each rank of this process, at the same time; all workers do.

        Parameters
        ----------
        call : callable
            Takes the local number of a replica and its rank in the group of all replicas.

        Returns
        -------
        list
            What the call gave for each replica of this process.
        """
        with self.turn:
            try:
                self.members()
                if self.num_local == 1:
                    return [call(0, self.member(0))]
                return call_everywhere(self._crews, lambda local: call(local, self.member(local)), self.abort)
            except BaseException as error:
                self.explain(error)
                raise

    def agree(self, shapes: Sequence[Any]) -> None:
        """See that all workers are about to combine the same structures, where some are new.

        Parameters
        ----------
        shapes : sequence of PyTreeSpec
        """
        if not self._knows(0, tuple(shapes)):
            self.together(lambda local, _: self.agree_one(local, shapes))

    def agree_one(self, local: int, shapes: Sequence[Any]) -> None:
        """See the same for one replica of this process, where all replicas do."""
        key = tuple(shapes)
        if self._knows(local, key):
            return
        text = "; ".join(describe_shape(shape) for shape in shapes)
        told = self._told[local]
        if text not in told:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            self.members()[local].barrier(f"combining {text} (structure {digest})")
            told[text] = None
        told[key] = None

    def _knows(self, local: int, key: tuple[Any, ...]) -> bool:
        return key in self._told[local] or all(shape == LEAF for shape in key)

    # --- options ------------------------------------------------------------------------------------------------------

    def asked_of(self, options: Any) -> CallOptions:
        """Read what the options of one call ask for, in addition to those of the strategy."""
        if options is None:
            return self._asked
        check_options(options)
        merged = self.options.merge(options)
        return read_options(dataclasses.replace(merged, timeout_seconds=options.timeout_seconds), Algorithm.AUTO)

    # --- ranks --------------------------------------------------------------------------------------------------------

    def members(self) -> list[Member]:
        """Give the ranks of this process, in a group of all replicas; joins the others if that has not happened."""
        if self._members is None:
            before = self._attempts
            with self._joining:
                if self._members is None:
                    self._join(before)
        return self._members  # type: ignore[return-value]  # joined now

    def _join(self, before: int) -> None:
        # Replicas come here together: what one of them waited for in vain, another one does not wait for again.
        if self._attempts != before and self._last_error is not None:
            raise copy.copy(self._last_error)
        try:
            self._members = join(self.cluster, self._number, resolve_timeout(self.options.timeout_seconds))
        except BaseException as error:
            self._last_error = error.with_traceback(None)
            raise
        finally:
            self._attempts += 1
        say_last_words(self)

    def member(self, local: int) -> Member:
        """Give one rank of this process for its next call; after an exception, once all replicas go on as well.

        An exception may have left the strategy in one worker and not in another. Their next calls would be taken for
        each other's, if those that go on after one did not say so first.
        """
        members = self.members()
        if self._to_resume and local in self._to_resume:
            members[local].barrier(_RESUME)
            self._to_resume.discard(local)
        return members[local]

    # --- failures -----------------------------------------------------------------------------------------------------

    def abort(self, reason: str) -> None:
        """End the group of all replicas, in all processes.

        Parameters
        ----------
        reason : str
            What this worker did, such as ``"raised KeyError: 'weights'"``.
        """
        if self._members is not None:
            told = f"{self.cluster.name} (pid {os.getpid()}) {reason}. {_RESTART}"
            self._members[0]._core.group.abort(told)

    @property
    def failure(self) -> str | None:
        """Why the workers cannot go on; None if they can."""
        return None if self._members is None else self._members[0]._core.group.failure

    def explain(self, error: BaseException) -> None:
        """Take note of an exception that leaves the strategy, and tell with it what can be done."""
        self._to_resume = set(range(self.num_local))
        for told in self._told:
            told.clear()  # what a worker told whose others did not listen
        if self.failure is None:
            return
        if self.is_of_group(error):
            error.args = (self._translated(error, error.args[0]), *error.args[1:])
        if "again" not in str(error):
            add_note(error, f"this strategy cannot go on, in none of its workers. {_RESTART}")

    def is_of_group(self, error: BaseException) -> bool:
        """Tell whether an exception is one of those in which the core tells why the group has failed."""
        if self.failure is None or not error.args or not isinstance(error.args[0], str):
            return False
        # Workers that end the group give the reason in their own words.
        is_call = isinstance(error, CollectiveAborted) and not self.failure.startswith("/job:")
        return isinstance(error, _OF_THE_CORE) or (is_call and error.args[0].startswith(self.failure))

    def _translated(self, error: BaseException, text: str) -> str:
        """What the core told, for a user who has never heard of ranks."""
        if isinstance(error, WorkerLostError) and 0 <= error.rank < self.cluster.num_ranks:
            text = _LOST.sub(f"{self.cluster.names[error.rank // self.num_local]} (pid", text, count=1)
        for told, meant in _SERIES.items():
            text = text.replace(told, meant)
        return _RANK.sub(self._who, text)

    def _who(self, match: re.Match[str]) -> str:
        """What a rank is to the user; ranks without a number are what there is one of for each."""
        if match[1] is None:
            return "worker" if self.num_local == 1 else "replica"
        rank = int(match[2])
        if rank >= self.cluster.num_ranks:
            return match[0]
        name = self.cluster.names[rank // self.num_local]
        return name if self.num_local == 1 else f"replica {rank} ({name})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Workers:
        return Workers(self.cluster, self.is_chief, self.options)
