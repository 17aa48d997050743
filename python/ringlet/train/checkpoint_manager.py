"""CheckpointManager: the checkpoints of one folder, of which it keeps the newest."""

from __future__ import annotations

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
from ringlet.train.latest import SUFFIX, file_of, known_state, last_good
from ringlet.train.save_consensus import chosen_by_chief, joined
from ringlet.train.saving import Saving
from ringlet.train.state_file import FolderState, write_state

__all__ = ["CheckpointManager"]

_log = logging.getLogger(__name__)
_now: Callable[[], float] = time.time


class CheckpointManager:
    """Saves a checkpoint again and again in one folder, and removes the oldest ones (``tf.train.CheckpointManager``).

    What it knows is in the folder's file ``checkpoint``: a manager that is made later goes on with it. Several managers
    may be at work in one folder; together they keep `max_to_keep` files.

    Parameters
    ----------
    checkpoint : Checkpoint
    directory : str or path
    max_to_keep : int or None
        How many to keep: the others are removed, the oldest first, once a new one is on the disk. None keeps all.
    keep_checkpoint_every_n_hours : float, optional
        Of those that would be removed, one is kept for good if it was saved so many hours after the last such one.
    checkpoint_name : str
        What files are named before their number.
    step_counter : Variable, optional
        The step of the program, for `checkpoint_interval`.
    checkpoint_interval : int, optional
        How many steps to go at least until :meth:`save` saves again.
    init_fn : callable, optional
        Called by :meth:`restore_or_initialize` where there is no checkpoint.
    last_checkpoint_step : int, optional
        The step of the last checkpoint, for `checkpoint_interval`.

    Raises
    ------
    TypeError
        If `checkpoint` is none.
    ValueError
        If `max_to_keep` is not positive, or there is a `checkpoint_interval` and no `step_counter`.

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

    def __init__(  # noqa: PLR0917  # as TensorFlow has them
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
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None: give the variable that counts "
                "steps"
            )
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                f"checkpoint is a ringlet.train.Checkpoint, got {checkpoint!r}: make one, such as "
                "Checkpoint(weights=weights, step=step)"
            )
        self._checkpoint = checkpoint
        self._directory = os.fsdecode(directory)
        self._max_to_keep = max_to_keep
        self._keep_every_seconds = None if not keep_checkpoint_every_n_hours else keep_checkpoint_every_n_hours * 3600.0
        self._name = checkpoint_name
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        self._timestamps: dict[str, float] = {}
        self._latest: str | None = None
        # Held while what it knows changes: threads may save at once. A signal handler may save, too.
        self._knowing = threading.RLock()
        # A little before now, as in TensorFlow: what is saved at once is newer.
        self._last_preserved = _now() - 1.0
        clean(self._directory)
        self._recover()

    # What it knows

    def _recover(self) -> None:
        """Take over what the folder tells."""
        base = os.path.basename(self._name)
        state, is_told = known_state(self._directory, f"{base}-")
        if state is None:
            return
        self._latest = self._path(state.latest)
        now = _now()
        if state.last_preserved is not None:
            self._last_preserved = min(state.last_preserved, now)
        timestamps = state.timestamps or (self._last_preserved,) * len(state.paths)
        known = {self._path(name): min(time, now) for name, time in zip(state.paths, timestamps, strict=True)}
        if is_told:
            self._timestamps = {path: time for path, time in known.items() if time > self._last_preserved}
        else:
            # Some of them may be kept for good, which nothing tells any more: the oldest ones are let alone.
            newest = list(known.items())[-int(self._max_to_keep or len(known)) :]
            self._timestamps = dict(newest)
            self._last_preserved = min([time for _, time in newest], default=now) - 1.0

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """How many steps to go at least until :meth:`save` saves again."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the checkpoints that may be removed one day, from the oldest to the newest."""
        return list(self._timestamps)

    # Saving

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Save a new checkpoint, and then remove what is too old.

        Parameters
        ----------
        checkpoint_number : int or Variable, optional
            At the end of its name; how often the checkpoint was saved, unless given.
        check_interval : bool
            Whether the `checkpoint_interval` counts. Even if not, nothing is saved twice at one step.
        options : CheckpointOptions, optional
            Who writes where there are several processes.

        Returns
        -------
        str or None
            The path of the checkpoint; None if it is too early for one.

        Raises
        ------
        ValueError, RuntimeError, OSError, ModuleNotFoundError
            As :meth:`Checkpoint.write` does; no checkpoint was removed then.
        """
        step = None
        if self._interval is not None:
            step = int(self._step_counter)
            if self._is_early(step, check_interval):
                return None
        wanted = None if checkpoint_number is None else _whole_number(checkpoint_number)
        counted = self._checkpoint._next_number()
        number = counted if wanted is None else wanted
        path = os.path.join(self._directory, f"{self._name}-{number}").removesuffix(SUFFIX)
        with Saving(self._checkpoint, path, options) as saving:
            saving.write()
            if saving.writes:
                self._note(path, step, self._write_and_sweep)
        if not saving.writes:
            self._note(path, step, self._sweep)  # the chief removes them
        return path

    def _note(self, path: str, step: int | None, then: Callable[[], Any]) -> None:
        with self._knowing:
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
            self._write_state()  # before anything is removed
            count = len(self._timestamps)
            remove_files([file_of(path) for path in self._sweep()])
            if len(self._timestamps) != count:
                self._write_state()

    def _join_others(self) -> None:
        """Count what other managers have saved here meanwhile, and do not count what they have removed."""
        state, is_told = known_state(self._directory)
        others = {}
        if state is not None and is_told:
            others = {self._path(name): time for name, time in zip(state.paths, state.timestamps, strict=False)}
            self._last_preserved = max(self._last_preserved, state.last_preserved or 0.0)
        mine = {path: time for path, time in self._timestamps.items() if os.path.exists(file_of(path))}
        every = {**{path: time for path, time in others.items() if time > self._last_preserved}, **mine}
        # The new one is the newest, whatever the clock has done.
        self._timestamps = dict(sorted(every.items(), key=lambda item: (item[0] == self._latest, item[1])))

    def _sweep(self) -> list[str]:
        """Forget what is too old, and give those that are to be removed."""
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
        assert self._latest is not None  # there is one that was just saved
        names = tuple([os.path.relpath(path, self._directory) for path in self._timestamps])
        latest = os.path.relpath(self._latest, self._directory)
        state = FolderState(latest, names, tuple(self._timestamps.values()), self._last_preserved)
        write_state(self._directory, state)

    # Restoring

    def restore_or_initialize(self) -> str | None:
        """Restore the newest checkpoint; where there is none, call `init_fn`.

        If the newest one is damaged, the newest one of which every byte is what was written is restored instead, with a
        warning.

        Returns
        -------
        str or None
            The path of what was restored; None if nothing was.

        Raises
        ------
        CheckpointCorruptError
            If all that are there are damaged.
        InvalidArgumentError
            If something does not fit; names everything that does not. Nothing was changed.
        """
        workers = joined()
        if workers is not None:
            self._latest = chosen_by_chief(workers, self._latest, self._directory)
        if self._latest is None:
            if self._init_fn is not None:
                self._init_fn()
                _log.info("there is no checkpoint in %s: init_fn was called", self._directory)
            return None
        path = self._restore(self._latest)
        if self._interval is not None:
            self._last_step = int(self._step_counter)
        return path

    def _restore(self, path: str) -> str:
        try:
            self._checkpoint.restore(path)
        except (CheckpointCorruptError, FileNotFoundError) as error:
            base = os.path.basename(self._name)
            good = last_good(os.path.dirname(self._path(self._name)), file_of(path), f"{base}-")
            workers = joined()
            if workers is not None:
                good = chosen_by_chief(workers, good, self._directory)
            if good is None:
                raise
            warnings.warn(f"{error} That one is restored: {good}", RuntimeWarning, stacklevel=3)
            self._checkpoint.restore(good)
            self._latest = good
            return good
        return path

    def sync(self) -> None:
        """Do nothing: every save is on the disk when it returns. For programs that wait for TensorFlow's."""


def _whole_number(number: Any) -> int:
    value = number.numpy() if hasattr(number, "numpy") else number
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"checkpoint_number is a whole number, or a variable that holds one, got {number!r}: give int(number)"
        ) from None
