"""Checkpoint: named objects that are saved to a file and restored from it."""

from __future__ import annotations

import os
import reprlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import context
from ringlet.errors import CheckpointCorruptError, FailedPreconditionError
from ringlet.observe.trace_hook import traced
from ringlet.train.atomic_files import locked
from ringlet.train.checkpoint_options import CheckpointOptions
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.decoding import Node
from ringlet.train.encoding import Path, name_of
from ringlet.train.latest import SUFFIX, file_of, latest_checkpoint, newest_intact
from ringlet.train.load_status import CheckpointLoadStatus, InitializationOnlyStatus, Matches
from ringlet.train.restoring import Restoration, leaf_names
from ringlet.train.save_consensus import restore_together, saving_workers
from ringlet.train.saving import Saving
from ringlet.train.state_file import FolderState, write_state
from ringlet.train.trackable_types import Group, kind_of_object, refusal
from ringlet.values import Variable
from ringlet.values.variables.variable_factory import create_plain
from ringlet.values.variables.variable_spec import VariableRequest

_COUNTER = "save_counter"
# Held while a save number is assigned, so that concurrent saves write different files. Reentrant for signal handlers.
_numbering = threading.RLock()


class Checkpoint(Group):
    """Named objects that are saved to a file together and restored from it (``tf.train.Checkpoint``).

    The objects are attributes of the checkpoint; attributes may be added later. Supported types: variables; numbers,
    text, bytes, None, arrays; lists, tuples, dictionaries, sets, dataclasses and namedtuples of these; other
    checkpoints; and objects with the methods ``get_state`` and ``set_state`` or ``state_dict`` and
    ``load_state_dict``, such as dataset iterators and PyTorch models and optimizers.

    Parameters
    ----------
    root : object, optional
        Saved under the name ``root``; the items of a Checkpoint, or of a dictionary whose keys are strings, are saved
        under their own names.
    **kwargs
        The objects by name.

    Raises
    ------
    ValueError
        If an object has an unsupported type, or its name is an attribute of every Checkpoint or of another item of
        `root`.

    Examples
    --------
    >>> import tempfile, ringlet
    >>> weights = ringlet.Variable([1.0, 2.0])
    >>> checkpoint = ringlet.train.Checkpoint(weights=weights, epoch=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = checkpoint.save(f"{folder}/ckpt")
    ...     _ = weights.assign([0.0, 0.0])
    ...     checkpoint.epoch = 0
    ...     _ = checkpoint.restore(path).assert_consumed()
    >>> weights.numpy(), checkpoint.epoch
    (array([1., 2.]), 7)
    """

    _objects: dict[str, Any]
    # Restore callbacks of attributes that are in a file and are not set yet.
    _deferred: dict[str, Callable[[Any], Any]]

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        object.__setattr__(self, "_objects", {})
        object.__setattr__(self, "_deferred", {})
        if root is not None:
            self.root = root
        inner = self._of_root()
        for name, value in sorted(kwargs.items()):
            if name in inner and inner[name] is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists: use "
                    "another name"
                )
            setattr(self, name, value)

    # --- attributes ---------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        objects = self.__dict__.get("_objects", {})  # empty while the checkpoint is being copied
        if name not in objects:
            present = ", ".join(objects) or "nothing yet"
            raise AttributeError(f"this Checkpoint has no attribute {name!r}; it has: {present}", name=name, obj=self)
        return objects[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in ("_objects", "_deferred"):
            raise ValueError(f"{name!r} is an attribute of every Checkpoint: save the object under another name")
        if kind_of_object(value) is None:
            raise ValueError(refusal(value, name))
        restore = self._deferred.pop(name, None)
        self._objects[name] = value
        if restore is not None:
            self._objects[name] = restore(value)

    def __delattr__(self, name: str) -> None:
        if name not in self._objects:
            raise AttributeError(f"this Checkpoint has no attribute {name!r}", name=name, obj=self)
        del self._objects[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._objects})

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        return f"Checkpoint({', '.join(f'{name}={value!r}' for name, value in self._objects.items())})"

    def _of_root(self) -> dict[str, Any]:
        root = self._objects.get("root")
        if isinstance(root, Checkpoint):
            return root._children()
        return root if isinstance(root, dict) and all(isinstance(key, str) for key in root) else {}

    def _children(self) -> dict[str, Any]:
        inner = self._of_root()
        return {**inner, **{name: value for name, value in self._objects.items() if name != "root" or not inner}}

    def _replace_values(self, values: dict[str, Any]) -> None:
        """Replace the values of attributes without validating them."""
        root = self._objects.get("root")
        for name, value in values.items():
            if name in self._objects:
                self._objects[name] = value
            elif isinstance(root, Checkpoint):
                root._replace_values({name: value})
            else:
                self._objects["root"][name] = value

    @property
    def save_counter(self) -> Variable:
        """The number of saves in all runs of the program, for the file names; a variable, which is itself saved."""
        if _COUNTER not in self._objects:
            counter = create_plain(None, VariableRequest(0, False, name=_COUNTER, dtype=np.int64))
            self._objects[_COUNTER] = counter
            restore = self._deferred.pop(_COUNTER, None)
            if restore is not None:
                restore(counter)
        found: Variable = self._objects[_COUNTER]
        return found

    # --- saving -------------------------------------------------------------------------------------------------------

    @traced("write", "checkpoint")
    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save everything to one file, which is neither numbered nor recorded as the newest checkpoint.

        Parameters
        ----------
        file_prefix : str or path
            Path of the file without the suffix ``.safetensors``. Its folder is created if it is missing.
        options : CheckpointOptions, optional
            The process that writes, if there are several, a barrier, and callbacks.

        Returns
        -------
        str
            `file_prefix` without the suffix, for :meth:`read`. The file is on disk if this process has written it.

        Raises
        ------
        ValueError, TypeError
            If an object, or an object nested in it, cannot be saved; the message names the object.
        RuntimeError
            If called inside ``strategy.run``, or if an array was modified during the save.
        OSError
            If the file cannot be written; an existing file of that name is unchanged.
        ModuleNotFoundError
            If the library safetensors is not installed.

        Notes
        -----
        All variables are saved with their values at one instant, without a copy; the program may assign to them during
        the call. Modifying another array during the save may raise an error.
        """
        self._refuse_replicas("saved")
        path = _prefix_of(file_prefix)
        with Saving(self, path, options) as saving:
            saving.write()
        return path

    @traced("save", "checkpoint")
    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save everything to a new numbered file and record it as the newest checkpoint of its folder.

        Parameters
        ----------
        file_prefix : str or path
            Path without number; with ``runs/ckpt``, the first save writes ``runs/ckpt-1.safetensors``.
        options : CheckpointOptions, optional
            The process that writes, if there are several, a barrier, and callbacks.

        Returns
        -------
        str
            Path for :meth:`restore`, such as ``runs/ckpt-1``. The file is on disk if this process has written it.

        Raises
        ------
        ValueError, TypeError, RuntimeError, OSError, ModuleNotFoundError
            As for :meth:`write`.
        """
        prefix = _prefix_of(file_prefix)
        path = f"{prefix}-{self._next_number()}"
        with Saving(self, path, options) as saving:
            saving.write()
            if saving.writes:
                folder, name = os.path.split(path)
                folder = folder or os.curdir
                with locked(folder):
                    write_state(folder, FolderState(name, (name,)))
        return path

    def _next_number(self) -> int:
        self._refuse_replicas("saved")
        with _numbering:
            self.save_counter.assign_add(1)
            return int(self.save_counter)

    def sync(self) -> None:
        """Do nothing: a save is on disk when it returns. For programs written for TensorFlow."""

    @staticmethod
    def latest(directory: Any) -> str | None:
        """Return the path of the newest checkpoint of a folder, or None (see :func:`latest_checkpoint`)."""
        return latest_checkpoint(directory)

    def _refuse_replicas(self, what: str) -> None:
        mode = context.current()
        if mode is not None and mode.local_replica_id is not None:
            raise RuntimeError(
                f"a checkpoint is {what} once for all replicas, but replica {mode.local_replica_id} made this call: "
                "call it outside strategy.run, or in the function passed to merge_call"
            )

    # --- restoring ----------------------------------------------------------------------------------------------------

    @traced("restore", "checkpoint")
    def read(
        self, save_path: Any, options: CheckpointOptions | None = None, *, strict: bool = False
    ) -> CheckpointLoadStatus:
        """Restore a file from :meth:`write`, as :meth:`restore` does, but without creating `save_counter`."""
        self._refuse_replicas("restored")
        path = _prefix_of(save_path)
        workers = saving_workers(options)
        if workers is None:
            restoration, saved_ns, change = self._read_file(path, strict)
            change()
        else:
            restoration, saved_ns = restore_together(workers, path, lambda: self._read_file(path, strict))
        matches = Matches(path, set(restoration.matched), set(restoration.unexpected))
        _defer(restoration, path, saved_ns, matches)
        return CheckpointLoadStatus(matches, lambda: leaf_names(self))

    def _read_file(self, path: str, strict: bool) -> tuple[Restoration, int, Callable[[], Any]]:
        """Compare and read everything; return the restoration, the time of the save, and a function that applies it."""
        try:
            with open_file(file_of(path)) as file:
                restoration = Restoration(file)
                make = restoration.match(self, file.tree)
                restoration.check(strict)
                return restoration, file.saved_ns, restoration.read(make)
        except CheckpointCorruptError as error:
            raise _with_advice(error, path) from None

    def restore(
        self, save_path: Any, options: CheckpointOptions | None = None, *, strict: bool = False
    ) -> CheckpointLoadStatus:
        """Restore everything from a file that :meth:`save` wrote.

        Objects that are only in the program keep their values; values that are only in the file are restored when a
        Checkpoint gets an attribute of that name. The returned status reports both.

        Parameters
        ----------
        save_path : str, path or None
            Path from :meth:`save` or :func:`latest_checkpoint`; nothing is restored if it is None.
        options : CheckpointOptions, optional
            Every process reads. The workers of a strategy restore together, unless `is_chief` or `barrier` is given.
        strict : bool
            Whether names that are only in the program or only in the file are an error.

        Returns
        -------
        CheckpointLoadStatus
            Status with ``assert_consumed``, ``assert_existing_objects_matched`` and ``assert_nontrivial_match``.

        Raises
        ------
        NotFoundError
            If the file does not exist.
        CheckpointCorruptError
            If the file is damaged; the message names the newest intact checkpoint of the same folder.
        InvalidArgumentError
            If an object does not match the file, for example in its shape. The message lists the mismatches; nothing is
            changed.
        RuntimeError
            If called inside ``strategy.run``.
        FailedPreconditionError
            If the workers of a strategy read different files at that path. An error of one worker is raised on all
            workers; an error found in comparing or reading leaves all objects unchanged.

        Notes
        -----
        Everything is compared and read before anything is changed, so a restore needs additional memory of the size of
        the variables. Arrays obtained from variables earlier do not change.
        """
        if save_path is None:
            workers = saving_workers(options)
            if workers is not None:
                workers.barrier("restore nothing")
            return InitializationOnlyStatus()
        had_counter = _COUNTER in self._objects
        _ = self.save_counter
        try:
            return self.read(save_path, options, strict=strict)
        except BaseException:
            if not had_counter:
                del self._objects[_COUNTER]
            raise


class _DeferredRestore:
    def __init__(self, path: str, saved_ns: int, node: Node, place: Path, matches: Matches) -> None:
        self._path, self._saved_ns = os.path.abspath(path), saved_ns
        self._node, self._place, self._matches = node, place, matches

    def __call__(self, value: Any) -> Any:
        """Return the restored value, which is `value` itself if its type is restored in place."""
        with open_file(file_of(self._path)) as file:
            if file.saved_ns != self._saved_ns:
                raise FailedPreconditionError(
                    f"{name_of(self._place)} is restored from {self._path} when it is set, but that file has since "
                    "been replaced: set the attribute before the next save to that path, or restore again"
                )
            restoration = Restoration(file)
            make = restoration.match(value, self._node, self._place)
            restoration.check(False)
            result = restoration.read(make)()
        self._matches.found_place(restoration.matched)
        _defer(restoration, self._path, self._saved_ns, self._matches)
        return result


def _defer(restoration: Restoration, path: str, saved_ns: int, matches: Matches) -> None:
    """Register values that are only in the file, to be restored when their attributes are set."""
    for group, name, node, place in restoration.later:
        if isinstance(group, Checkpoint):
            group._deferred[name] = _DeferredRestore(path, saved_ns, node, place, matches)


def _prefix_of(path: Any) -> str:
    text = os.fspath(path.item() if isinstance(path, np.ndarray) and path.ndim == 0 else path)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return text.removesuffix(SUFFIX)


def _with_advice(error: CheckpointCorruptError, path: str) -> CheckpointCorruptError:
    folder, name = os.path.split(path)
    good = newest_intact(folder or os.curdir, file_of(path), name.rpartition("-")[0])
    advice = (
        "its folder holds no intact checkpoint"
        if good is None
        else (f"the newest intact checkpoint in its folder is {good}")
    )
    return CheckpointCorruptError(f"{error}. Nothing was restored; {advice}", error.file, error.offset)
