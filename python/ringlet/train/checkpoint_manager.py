"""CheckpointManager: saves numbered checkpoints in one folder, and keeps the newest."""

from __future__ import annotations

import contextlib
import logging
import operator
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from ringlet.errors import CheckpointCorruptError
from ringlet.train.atomic_files import clean, locked, make_folder, remove_files
from ringlet.train.checkpoint import Checkpoint
from ringlet.train.checkpoint_options import CheckpointOptions
from ringlet.train.latest import SUFFIX, file_of, known_state, newest_intact
from ringlet.train.load_status import CheckpointLoadStatus
from ringlet.train.safetensors_import import safetensors
from ringlet.train.save_consensus import chief_choice, saving_workers
from ringlet.train.saving import Saving
from ringlet.train.state_file import FolderState, write_state

_log = logging.getLogger(__name__)
_now: Callable[[], float] = time.time


class CheckpointManager:
    """Saves numbered checkpoints in one folder and removes the oldest checkpoints (``tf.train.CheckpointManager``).

    The file ``checkpoint`` in the folder holds the state of the manager, from which a later manager continues. Several
    managers may use one folder; together they keep `max_to_keep` files.

    Parameters
    ----------
    checkpoint : Checkpoint
        The objects to save.
    directory : str or path
        Folder of the checkpoints; created by the first save.
    max_to_keep : int or None
        Number of checkpoints to keep: once a new checkpoint is on disk, the oldest are removed. None keeps all.
    keep_checkpoint_every_n_hours : float, optional
        Keep a checkpoint permanently, instead of removing it, if it is at least this many hours newer than the last
        checkpoint kept permanently or, without one, than the manager.
    checkpoint_name : str
        Prefix of the file names.
    step_counter : Variable, optional
        The variable that counts steps, for `checkpoint_interval`.
    checkpoint_interval : int, optional
        Minimum number of steps between two checkpoints.
    init_fn : callable, optional
        Called by :meth:`restore_or_initialize` if there is no checkpoint.
    last_checkpoint_step : int, optional
        Step of the last checkpoint, for `checkpoint_interval`.
    in_background : bool
        Whether a thread writes the file after `save` has copied the values and returned; variables need no copy. The
        next save or restore waits for the file, and raises an error if it could not be written; see :meth:`sync`.

    Raises
    ------
    TypeError
        If `checkpoint` is not a Checkpoint.
    ValueError
        If `max_to_keep` is not positive, or `checkpoint_interval` is given without `step_counter`.
    ModuleNotFoundError
        If the library safetensors is not installed.

    Examples
    --------
    >>> import os, tempfile, ringlet
    >>> checkpoint = ringlet.train.Checkpoint(weights=ringlet.Variable([1.0, 2.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = ringlet.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    ...     for _ in range(3):
    ...         path = manager.save()
    ...     print(sorted(os.listdir(folder)), os.path.basename(manager.restore_or_initialize()))
    ['checkpoint', 'ckpt-2.safetensors', 'ckpt-3.safetensors'] ckpt-3
    """

    def __init__(  # noqa: PLR0917  # TensorFlow's signature
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
        *,
        in_background: bool = False,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None: pass the variable that counts "
                "steps"
            )
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                f"checkpoint must be a ringlet.train.Checkpoint, got {checkpoint!r}: create one, as in "
                "Checkpoint(weights=weights, step=step)"
            )
        safetensors()  # a missing library is reported here, not by the first save
        self._checkpoint = checkpoint
        self._directory = os.fsdecode(directory)
        self._max_to_keep = max_to_keep
        self._keep_every_seconds = None if not keep_checkpoint_every_n_hours else keep_checkpoint_every_n_hours * 3600.0
        self._name = checkpoint_name
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        self._is_in_background = in_background
        self._pending: contextlib.ExitStack | None = None  # context of a background save; exit waits for the file
        self._turn = threading.RLock()  # held while a save in the background begins or ends
        self._timestamps: dict[str, float] = {}
        self._latest: str | None = None
        # Held while the manager's state changes: threads may save concurrently. Reentrant for signal handlers.
        self._state_lock = threading.RLock()
        # Slightly before now, as in TensorFlow, so that a checkpoint saved immediately counts as newer.
        self._last_preserved = _now() - 1.0
        clean(self._directory)
        self._recover()

    # --- state --------------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        base = os.path.basename(self._name)
        state, is_from_file = known_state(self._directory, f"{base}-")
        if state is None:
            return
        self._latest = self._path(state.latest)
        now = _now()
        if state.last_preserved is not None:
            self._last_preserved = min(state.last_preserved, now)
        timestamps = state.timestamps or (self._last_preserved,) * len(state.paths)
        known = {self._path(name): min(time, now) for name, time in zip(state.paths, timestamps, strict=True)}
        if is_from_file:
            self._timestamps = {path: time for path, time in known.items() if time > self._last_preserved}
        else:
            # The record of permanently kept checkpoints is lost, so the oldest checkpoints are not removed.
            newest = list(known.items())[-int(self._max_to_keep or len(known)) :]
            self._timestamps = dict(newest)
            self._last_preserved = min([time for _, time in newest], default=now) - 1.0

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @property
    def directory(self) -> str:
        """The folder of the checkpoints."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The Checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """Minimum number of steps between two checkpoints."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint that is on disk, or None."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the checkpoints that `max_to_keep` counts, from the oldest to the newest."""
        return list(self._timestamps)

    # --- saving -------------------------------------------------------------------------------------------------------

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Save a new checkpoint, then remove the oldest checkpoints beyond `max_to_keep`.

        Parameters
        ----------
        checkpoint_number : int or Variable, optional
            Number in the file name; default: the number of saves.
        check_interval : bool
            Whether `checkpoint_interval` applies. With an interval, a step is saved only once in either case.
        options : CheckpointOptions, optional
            The process that writes, if there are several, a barrier, and callbacks.

        Returns
        -------
        str or None
            Path of the checkpoint; None if `checkpoint_interval` steps have not passed, or the step was saved already.

        Raises
        ------
        ValueError, TypeError, RuntimeError, OSError, ModuleNotFoundError
            As for :meth:`Checkpoint.write`; if the file was not written, no checkpoint was removed. Also a TypeError if
            `checkpoint_number` is not an integer.
        """
        with self._turn if self._is_in_background else contextlib.nullcontext():
            self.sync()
            return self._save(checkpoint_number, check_interval, options)

    def _save(self, checkpoint_number: Any, check_interval: bool, options: CheckpointOptions | None) -> str | None:
        step = None
        if self._interval is not None:
            step = int(self._step_counter)
            if self._is_early(step, check_interval):
                return None
        wanted = None if checkpoint_number is None else _whole_number(checkpoint_number)
        counted = self._checkpoint._next_number()
        number = counted if wanted is None else wanted
        path = os.path.join(self._directory, f"{self._name}-{number}").removesuffix(SUFFIX)
        saving = Saving(self._checkpoint, path, options)

        last_step = self._last_step

        def end(kind: type[BaseException] | None, *_: Any) -> None:
            if kind is not None:
                self._last_step = last_step
            elif not saving.writes:
                self._note(path, step, self._sweep)  # only the state changes here; the chief removes the files

        def write() -> None:
            saving.write()
            self._note(path, step, self._write_and_sweep)

        with contextlib.ExitStack() as stack:
            stack.push(end)
            stack.enter_context(saving)
            if not self._is_in_background:
                if saving.writes:
                    write()
                return path
            if saving.writes:
                saving.copy()
                writer = _Writer(path, write)
                stack.callback(writer.join_or_raise)
                writer.start()
            self._last_step = last_step if step is None else step
            self._pending = stack.pop_all()
        return path

    def _note(self, path: str, step: int | None, then: Callable[[], Any]) -> None:
        with self._state_lock:
            self._last_step = self._last_step if step is None else step
            self._latest = path
            self._timestamps.pop(path, None)
            self._timestamps[path] = _now()
            then()

    def _is_early(self, step: int, check_interval: bool) -> bool:
        assert self._interval is not None
        if self._last_step is None:
            return False
        return step == self._last_step or (check_interval and step < self._last_step + self._interval)

    def _write_and_sweep(self) -> None:
        make_folder(self._directory)
        with locked(self._directory):
            self._join_others()
            self._write_state()  # the new state is on disk before files are removed
            count = len(self._timestamps)
            remove_files([file_of(path) for path in self._sweep()])
            if len(self._timestamps) != count:
                self._write_state()

    def _join_others(self) -> None:
        """Add the checkpoints that other managers saved in this folder and drop the checkpoints that they removed."""
        state, is_from_file = known_state(self._directory)
        others = {}
        if state is not None and is_from_file:
            others = {self._path(name): time for name, time in zip(state.paths, state.timestamps, strict=False)}
            self._last_preserved = max(self._last_preserved, state.last_preserved or 0.0)
        mine = {path: time for path, time in self._timestamps.items() if os.path.exists(file_of(path))}
        every = {**{path: time for path, time in others.items() if time > self._last_preserved}, **mine}
        # The new checkpoint counts as the newest even if the clock was set back.
        self._timestamps = dict(sorted(every.items(), key=lambda item: (item[0] == self._latest, item[1])))

    def _sweep(self) -> list[str]:
        """Drop the oldest checkpoints beyond `max_to_keep` from the state; return those not kept permanently."""
        removed: list[str] = []
        while self._max_to_keep and len(self._timestamps) > self._max_to_keep:
            path = next(iter(self._timestamps))
            saved = self._timestamps.pop(path)
            if self._keep_every_seconds is not None and saved - self._keep_every_seconds >= self._last_preserved:
                self._last_preserved = saved
            else:
                removed.append(path)
        return removed

    def _write_state(self) -> None:
        assert self._latest is not None  # the save has set `_latest`
        names = tuple([os.path.relpath(path, self._directory) for path in self._timestamps])
        latest = os.path.relpath(self._latest, self._directory)
        state = FolderState(latest, names, tuple(self._timestamps.values()), self._last_preserved)
        write_state(self._directory, state)

    # --- restoring ----------------------------------------------------------------------------------------------------

    def restore_or_initialize(self) -> str | None:
        """Restore the newest checkpoint; call `init_fn` if there is no checkpoint.

        If the newest checkpoint is damaged or missing, the newest intact checkpoint is restored instead, with a
        warning.

        Returns
        -------
        str or None
            Path of the restored checkpoint; None if there was no checkpoint.

        Raises
        ------
        CheckpointCorruptError
            If every checkpoint is damaged.
        InvalidArgumentError
            If an object does not match the file. The message lists the mismatches; nothing is changed.
        """
        return self._restore_newest(lambda status: None)

    def _restore_newest(self, check: Callable[[CheckpointLoadStatus], Any]) -> str | None:
        self.sync()
        workers = saving_workers()
        if workers is not None:
            self._latest = chief_choice(workers, self._latest, self._directory)
        if self._latest is None:
            if self._init_fn is not None:
                self._init_fn()
                _log.info("no checkpoint in %s: init_fn was called", self._directory)
            return None
        path = self._restore(self._latest, check)
        if self._interval is not None:
            self._last_step = int(self._step_counter)
        return path

    def _restore(self, path: str, check: Callable[[CheckpointLoadStatus], Any]) -> str:
        try:
            check(self._checkpoint.restore(path))
        except (CheckpointCorruptError, FileNotFoundError) as error:
            base = os.path.basename(self._name)
            good = newest_intact(os.path.dirname(self._path(self._name)), file_of(path), f"{base}-")
            workers = saving_workers()
            if workers is not None:
                good = chief_choice(workers, good, self._directory)
            if good is None:
                raise
            text = str(error).removesuffix(".")
            warnings.warn(f"{text}. Restoring {good} instead", RuntimeWarning, stacklevel=4)
            check(self._checkpoint.restore(good))
            self._latest = good
            return good
        return path

    def sync(self) -> None:
        """Wait until a background save is on disk, as the program does at exit.

        All workers of a strategy must make this call.

        Raises
        ------
        OSError
            If the file could not be written. Checkpoints that were saved before are unchanged.
        """
        with self._turn:
            pending, self._pending = self._pending, None
            if pending is not None:
                pending.close()


class _Writer(threading.Thread):
    """Thread that writes a file; it logs an error, because the program may exit before `join_or_raise` raises it."""

    def __init__(self, path: str, write: Callable[[], Any]) -> None:
        super().__init__(name="ringlet-save", daemon=False)
        self._path, self._write = path, write
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self._error = error
            _log.warning("%s was not saved: %s", self._path, error)

    def join_or_raise(self) -> None:
        self.join()
        if self._error is not None:
            raise self._error


def _whole_number(number: Any) -> int:
    value = number.numpy() if hasattr(number, "numpy") else number
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"checkpoint_number must be an integer, or a variable that holds one, got {number!r}: pass int(number)"
        ) from None
