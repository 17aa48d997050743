"""PreemptionCheckpointHandler: when a worker is about to be preempted, all workers save at the same step, and exit."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.errors.exception_notes import add_note
from ringlet.train.checkpoint import Checkpoint
from ringlet.train.checkpoint_manager import CheckpointManager
from ringlet.train.load_status import CheckpointLoadStatus, listed
from ringlet.train.per_worker_state import own_objects
from ringlet.train.save_consensus import saving_workers
from ringlet.train.termination import TerminationConfig, TerminationNotice
from ringlet.values.variables.variable_factory import create_plain
from ringlet.values.variables.variable_spec import VariableRequest

_log = logging.getLogger(__name__)
T = TypeVar("T")

_COUNTER = "checkpointed_runs"
_EXIT_STATUS = 42  # as in TensorFlow
_MARGIN_RUNS = 6  # time for this many runs is left at the end of the grace period, as in TensorFlow


class PreemptionCheckpointHandler:
    """Saves a checkpoint and exits when a worker is preempted.

    As in ``tf.distribute.experimental.PreemptionCheckpointHandler``, the newest checkpoint is restored on creation. If
    any worker then receives SIGTERM, all workers save at the same step and exit once the file is on disk. They agree on
    the step with an all-reduce of 8 bytes after every :meth:`run`.

    Parameters
    ----------
    cluster_resolver : ClusterResolver or None
        The resolver of the strategy, which is created before the handler; None in a single process.
    checkpoint_or_checkpoint_manager : Checkpoint or CheckpointManager
    checkpoint_dir : str or path, optional
        The folder for a Checkpoint; only the newest file is kept.
    termination_config : TerminationConfig, optional

    Raises
    ------
    InvalidArgumentError
        If a Checkpoint is passed without `checkpoint_dir`, or the newest checkpoint belongs to another program because
        it contains none of the objects. If it contains some objects, they are restored, and a warning lists the rest.
    NotImplementedError
        If the cluster has parameter servers.
    FailedPreconditionError
        If the cluster has several workers, and this process has not created their strategy.
    ValueError
        If this is not the main thread, which handles SIGTERM, and there is no `termination_watcher_fn`.

    Notes
    -----
    The save takes place at the beginning of the next :meth:`run`, so that everything between two calls belongs to the
    saved step. A batch that was taken for that next call is returned to its iterator, if the checkpoint holds the
    iterator. SIGTERM has its previous effect once the handler has been deleted.

    Examples
    --------
    >>> import os, signal, tempfile, ringlet
    >>> weights = ringlet.Variable(0.0)
    >>> def train():
    ...     handler = PreemptionCheckpointHandler(None, ringlet.train.Checkpoint(weights=weights), folder)
    ...     for step in range(handler.total_run_calls, 10):
    ...         _ = handler.run(weights.assign_add, 1.0)
    ...         if step == 4:
    ...             os.kill(os.getpid(), signal.SIGTERM)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         train()
    ...     except SystemExit as end:
    ...         print(end.code, weights.numpy())
    ...     train()
    42 6.0
    >>> print(weights.numpy())
    10.0
    """

    def __init__(
        self,
        cluster_resolver: Any,
        checkpoint_or_checkpoint_manager: Checkpoint | CheckpointManager,
        checkpoint_dir: Any = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        target = checkpoint_or_checkpoint_manager
        if isinstance(target, Checkpoint) and not checkpoint_dir:
            raise InvalidArgumentError("When a checkpoint is passed, a checkpoint_dir must be passed as well.")
        _check_cluster(cluster_resolver)
        self._manager = (
            target if isinstance(target, CheckpointManager) else CheckpointManager(target, checkpoint_dir, 1)
        )
        self._config = termination_config or TerminationConfig()
        checkpoint = self._manager.checkpoint
        if not hasattr(checkpoint, _COUNTER):
            setattr(checkpoint, _COUNTER, create_plain(None, VariableRequest(0, False, name=_COUNTER, dtype=np.int64)))
        self._notice = TerminationNotice(self._config.termination_watcher_fn)
        self._manager._restore_newest(_refuse_another_program)
        self._is_due = self._is_postponed = self._is_in_grace_period = False
        self._positions: dict[int, tuple[Any, Any]] = {}  # id -> iterator, and its state after the last run
        self._run_seconds = self._save_seconds = 0.0
        self._num_runs = 0

    @property
    def total_run_calls(self) -> int:
        """The number of calls to :meth:`run` and :meth:`save_checkpoint_if_preempted`, including restored calls."""
        return int(getattr(self._manager.checkpoint, _COUNTER))

    def run(self, distributed_train_function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Train one step with a function, and return its result; if a termination is due, first save, and exit.

        All workers must make the same calls, outside of ``strategy.run``.

        Raises
        ------
        OSError
            If the save fails; checkpoints that were saved before are unchanged.
        Exception
            Errors of the function.
        """
        self._manager.checkpoint._refuse_replicas("saved")
        self._save_if_due()
        begin = time.monotonic()
        result = distributed_train_function(*args, **kwargs)
        self._count(time.monotonic() - begin)
        self._is_due = self._is_termination_due()
        if self._is_due:
            self._positions = {id(each): (each, each.get_state()) for each in self._iterators()}
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Save and exit if any worker has a termination notice; for loops without :meth:`run`, after each step.

        Parameters
        ----------
        *args, **kwargs
            Passed to the manager's ``save``, or to ``save_fn``.
        """
        self._manager.checkpoint._refuse_replicas("saved")
        self._count(0.0)
        if self._is_termination_due():
            self._save_and_exit(*args, **kwargs)

    @contextlib.contextmanager
    def watch_preemption_scope(self) -> Iterator[None]:
        """Return a context manager that does nothing, for programs written for TPUs."""
        yield

    def _count(self, seconds: float) -> None:
        counter = getattr(self._manager.checkpoint, _COUNTER)
        counter.assign_add(1)
        self._num_runs += 1
        self._run_seconds += (seconds - self._run_seconds) / self._num_runs

    def _is_termination_due(self) -> bool:
        """Return whether any worker has to save now; the result is the same on all workers."""
        at = self._notice.at
        is_asked = at is not None
        if at is not None and self._is_in_grace_period:
            margin = _MARGIN_RUNS * self._run_seconds + 2 * self._save_seconds
            is_asked = time.monotonic() >= at + self._grace_seconds - margin
        workers = saving_workers()
        return is_asked if workers is None else workers.sum(int(is_asked)) > 0

    @property
    def _grace_seconds(self) -> float:
        return self._config.grace_period or 0.0

    def _iterators(self) -> list[Any]:
        return [each for _, each in own_objects(self._manager.checkpoint) if hasattr(each, "__next__")]

    def _save_if_due(self) -> None:
        if not self._is_due:
            return
        self._is_due = False
        iterators = self._iterators()
        if not self._is_postponed and any(id(each) not in self._positions for each in iterators):
            self._is_postponed = True  # the first batch of a new iterator may be in use: save after the next run
            return
        # Save the iterators as they were before they yielded the batch of the next run, which follows the restart.
        taken = [(each, each.get_state()) for each in iterators if id(each) in self._positions]
        for each, _ in taken:
            each.set_state(self._positions[id(each)][1])
        self._save_and_exit()
        for each, state in taken:
            each.set_state(state)

    def _save_and_exit(self, *args: Any, **kwargs: Any) -> None:
        begin = time.monotonic()
        try:
            self._save(*args, **kwargs)
        except Exception as error:
            newest = self._manager.latest_checkpoint
            add_note(error, f"termination was requested, but saving failed. The newest checkpoint is {newest}")
            raise
        self._save_seconds = time.monotonic() - begin
        self._is_postponed, self._positions = False, {}
        continues = self._grace_seconds > 0 and not self._is_in_grace_period
        workers = saving_workers()
        _log.log(
            logging.WARNING if workers is None or workers.is_chief else logging.INFO,
            "termination was requested: saved %s after %d runs, in %.1f s; %s",
            self._manager.latest_checkpoint, self.total_run_calls, self._save_seconds,
            f"training continues in the grace period of {self._grace_seconds:g} s" if continues else "exiting",
        )  # fmt: skip
        self._is_in_grace_period = continues
        if not continues:
            self._notice.keep_until_exit()
            (self._config.exit_fn or (lambda: sys.exit(_EXIT_STATUS)))()
            self._notice.at = None

    def _save(self, *args: Any, **kwargs: Any) -> None:
        if self._config.save_fn is not None:
            self._config.save_fn(*args, **kwargs)
        else:
            if len(args) < 2:
                kwargs.setdefault("check_interval", False)
            self._manager.save(*args, **kwargs)
        self._manager.sync()


def _refuse_another_program(status: CheckpointLoadStatus) -> None:
    """Raise an InvalidArgumentError if none of the program's objects is in the checkpoint, except for the counters."""
    counters = {_COUNTER, "save_counter"}
    matches, present = status._matches, {*status._present()} - counters
    saved = (matches.matched | matches.unexpected) - counters
    if present and saved and not present & saved:
        raise InvalidArgumentError(
            f"the checkpoint {matches.path} belongs to another program: it holds {listed(saved)}, and this program "
            f"saves {listed(present)}. Pass another folder to the CheckpointManager, or use the names of that program "
            "in the Checkpoint"
        )


def _check_cluster(resolver: Any) -> None:
    jobs = resolver.cluster_spec().as_dict() if resolver is not None else {}
    if "ps" in jobs:
        raise NotImplementedError(
            "PreemptionCheckpointHandler does not support usage with "
            "tf.distribute.experimental.ParameterServerStrategy: save with a CheckpointManager in the coordinator"
        )
    count = sum(map(len, jobs.values()))
    # The hosts of a TPU slice are simulated in this process.
    if count > 1 and saving_workers() is None and not hasattr(resolver, "tpu_hardware_feature"):
        raise FailedPreconditionError(
            f"the cluster has {count} workers, but this process has not created their strategy: create the "
            "MultiWorkerMirroredStrategy before the PreemptionCheckpointHandler"
        )
