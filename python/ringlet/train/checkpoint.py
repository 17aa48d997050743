"""Checkpoint: objects by name, saved to a file and restored from it."""

from __future__ import annotations

import os
import reprlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import context
from ringlet.errors import CheckpointCorruptError, FailedPreconditionError
from ringlet.train.atomic_files import locked
from ringlet.train.checkpoint_options import CheckpointOptions
from ringlet.train.checkpoint_reader import open_file
from ringlet.train.decoding import Node
from ringlet.train.encoding import Path, name_of
from ringlet.train.latest import SUFFIX, file_of, last_good, latest_checkpoint
from ringlet.train.load_status import CheckpointLoadStatus, InitializationOnlyStatus, Matches
from ringlet.train.restoring import Restoration, leaf_names
from ringlet.train.save_consensus import joined, restored_together
from ringlet.train.saving import Saving
from ringlet.train.state_file import FolderState, write_state
from ringlet.train.trackable_types import Group, kind_of_object, refusal
from ringlet.values import Variable
from ringlet.values.variables.variable_factory import create_plain
from ringlet.values.variables.variable_spec import VariableRequest

__all__ = ["Checkpoint"]

_COUNTER = "save_counter"
# Held while a number is taken: two threads that save one checkpoint write two files. A signal handler may save, too.
_numbering = threading.RLock()


class Checkpoint(Group):
    """Objects by name, which are saved to a file together and restored from it (``tf.train.Checkpoint``).

    They are attributes of the checkpoint; more may be set later. They may be variables; numbers, text, bytes, None,
    arrays; lists, tuples, dictionaries, sets, dataclasses and namedtuples of these; other checkpoints; and any object
    with the methods ``get_state`` and ``set_state`` or ``state_dict`` and ``load_state_dict``, such as iterators of
    datasets, models and optimizers of PyTorch.

    Parameters
    ----------
    root : object, optional
        Saved under the name ``root``; of a Checkpoint or a dictionary, what is in it under its own name.
    **kwargs
        The objects.

    Raises
    ------
    ValueError
        If an object is of another kind, or its name is one that the checkpoint itself has.

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
    # Of attributes that are in a file and not yet here: what restores each of them.
    _waiting: dict[str, Callable[[Any], Any]]

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        object.__setattr__(self, "_objects", {})
        object.__setattr__(self, "_waiting", {})
        if root is not None:
            self.root = root
        inner = self._of_root()
        for name, value in sorted(kwargs.items()):
            if name in inner and inner[name] is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists: give it "
                    "another name"
                )
            setattr(self, name, value)

    # Its attributes

    def __getattr__(self, name: str) -> Any:
        objects = self.__dict__.get("_objects", {})  # empty while it is being copied
        if name not in objects:
            present = ", ".join(objects) or "nothing yet"
            raise AttributeError(f"this Checkpoint has no {name!r}, it has: {present}", name=name, obj=self)
        return objects[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in ("_objects", "_waiting"):
            raise ValueError(f"{name!r} is a name that every Checkpoint has: give the object another one")
        if kind_of_object(value) is None:
            raise ValueError(refusal(value, name))
        restore = self._waiting.pop(name, None)
        self._objects[name] = value
        if restore is not None:
            self._objects[name] = restore(value)

    def __delattr__(self, name: str) -> None:
        if name not in self._objects:
            raise AttributeError(f"this Checkpoint has no {name!r}", name=name, obj=self)
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

    def _take(self, values: dict[str, Any]) -> None:
        """Take other values for attributes, without looking at them again."""
        root = self._objects.get("root")
        for name, value in values.items():
            if name in self._objects:
                self._objects[name] = value
            elif isinstance(root, Checkpoint):
                root._take({name: value})
            else:
                self._objects["root"][name] = value

    @property
    def save_counter(self) -> Variable:
        """How often this was saved, in all its runs: a variable, which is saved, too, and numbers the files."""
        if _COUNTER not in self._objects:
            counter = create_plain(None, VariableRequest(0, False, name=_COUNTER, dtype=np.int64))
            self._objects[_COUNTER] = counter
            restore = self._waiting.pop(_COUNTER, None)
            if restore is not None:
                restore(counter)
        found: Variable = self._objects[_COUNTER]
        return found

    # Saving

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save everything to one file, and do no more: no number, no note of which file is the newest.

        Parameters
        ----------
        file_prefix : str or path
            Where; the file has ``.safetensors`` behind it. Its folder is made if it is not there.
        options : CheckpointOptions, optional
            Who writes where there are several processes.

        Returns
        -------
        str
            `file_prefix`, for :meth:`read`. The file is on the disk.

        Raises
        ------
        ValueError
            If an object, or one in it, cannot be saved; says which.
        RuntimeError
            If it is called inside ``strategy.run``, or an array was written to meanwhile.
        OSError
            If the system refuses. A file that was there before is still there.
        ModuleNotFoundError
            If the library safetensors is not installed.

        Notes
        -----
        What variables hold at one moment is saved, and written from where it lies: programs may go on to assign. Arrays
        of other kinds must not be written to meanwhile; that is noticed.
        """
        self._refuse_replicas("saved")
        path = _prefix_of(file_prefix)
        with Saving(self, path, options) as saving:
            saving.write()
        return path

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save everything to a new file with a number, and note in its folder that it is the newest.

        Parameters
        ----------
        file_prefix : str or path
            ``runs/ckpt`` is saved to ``runs/ckpt-1.safetensors`` first.
        options : CheckpointOptions, optional
            Who writes where there are several processes.

        Returns
        -------
        str
            Path for :meth:`restore`, such as ``runs/ckpt-1``. The file is on the disk.

        Raises
        ------
        ValueError, RuntimeError, OSError, ModuleNotFoundError
            As :meth:`write` does.
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
        """Do nothing: every save is on the disk when it returns. For programs that wait for TensorFlow's."""

    @staticmethod
    def latest(directory: Any) -> str | None:
        """Give the newest checkpoint of a folder, as :func:`latest_checkpoint` does; None if there is none."""
        return latest_checkpoint(directory)

    def _refuse_replicas(self, what: str) -> None:
        mode = context.current()
        if mode is not None and mode.local_replica_id is not None:
            raise RuntimeError(
                f"a checkpoint is {what} once for all replicas, and this is replica {mode.local_replica_id}: call it "
                "outside of strategy.run, or from the function of merge_call"
            )

    # Restoring

    def read(
        self, save_path: Any, options: CheckpointOptions | None = None, *, strict: bool = False
    ) -> CheckpointLoadStatus:
        """Restore everything from a file that :meth:`write` wrote: as :meth:`restore`, but for the ``save_counter``."""
        self._refuse_replicas("restored")
        path = _prefix_of(save_path)
        workers = joined(options)
        if workers is None:
            restoration, saved_ns, change = self._read_file(path, strict)
            change()
        else:
            restoration, saved_ns = restored_together(workers, path, lambda: self._read_file(path, strict))
        matches = Matches(path, set(restoration.matched), set(restoration.unexpected))
        _wait(restoration, path, saved_ns, matches)
        return CheckpointLoadStatus(matches, lambda: leaf_names(self))

    def _read_file(self, path: str, strict: bool) -> tuple[Restoration, int, Callable[[], Any]]:
        """Compare and read everything: what goes where, when the file was written, and what changes the objects."""
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

        Names that only one side has are no error: what is in the program keeps its value, and what is in the file is
        restored once an attribute of that name is set. The status tells.

        Parameters
        ----------
        save_path : str, path or None
            What :meth:`save` or :func:`latest_checkpoint` gave; nothing happens if it is None.
        options : CheckpointOptions, optional
            Every process reads. The workers of a strategy restore together, unless it says who the chief is.
        strict : bool
            Whether names that only one side has are an error.

        Returns
        -------
        CheckpointLoadStatus
            Has the checks ``assert_consumed``, ``assert_existing_objects_matched`` and ``assert_nontrivial_match``.

        Raises
        ------
        NotFoundError
            If there is no such file.
        CheckpointCorruptError
            If it is not what was written; names the newest one in the same folder that is.
        InvalidArgumentError
            If something does not fit, such as a shape; names everything that does not. Nothing was changed.
        RuntimeError
            If it is called inside ``strategy.run``.
        FailedPreconditionError
            If the workers of a strategy have different files under that name. What goes wrong on one of them is raised
            on all, and none has changed anything.

        Notes
        -----
        Everything is compared and read before anything is changed, which needs memory for another copy of the
        variables. Arrays that were read before do not change.
        """
        if save_path is None:
            workers = joined(options)
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


class _Later:
    """Restores what a file has for an attribute when that is set."""

    def __init__(self, path: str, saved_ns: int, node: Node, place: Path, matches: Matches) -> None:
        self._path, self._saved_ns = os.path.abspath(path), saved_ns
        self._node, self._place, self._matches = node, place, matches

    def __call__(self, value: Any) -> Any:
        """Give what belongs in the place of the value, which is the value itself if it keeps its identity."""
        with open_file(file_of(self._path)) as file:
            if file.saved_ns != self._saved_ns:
                raise FailedPreconditionError(
                    f"{name_of(self._place)} is to be restored from {self._path}, and there is another checkpoint now: "
                    "set it before another one of that name is saved, or restore again"
                )
            restoration = Restoration(file)
            make = restoration.match(value, self._node, self._place)
            restoration.check(False)
            result = restoration.apply(make)
        self._matches.found_place(restoration.matched)
        _wait(restoration, self._path, self._saved_ns, self._matches)
        return result


def _wait(restoration: Restoration, path: str, saved_ns: int, matches: Matches) -> None:
    """Have what only the file has restored once it is there."""
    for group, name, node, place in restoration.later:
        if isinstance(group, Checkpoint):
            group._waiting[name] = _Later(path, saved_ns, node, place, matches)


def _prefix_of(path: Any) -> str:
    text = os.fspath(path.item() if isinstance(path, np.ndarray) and path.ndim == 0 else path)
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    return text.removesuffix(SUFFIX)


def _with_advice(error: CheckpointCorruptError, path: str) -> CheckpointCorruptError:
    """The error with the name of what can be restored instead."""
    folder, name = os.path.split(path)
    good = last_good(folder or os.curdir, file_of(path), name.rpartition("-")[0])
    advice = "there is no other in its folder" if good is None else f"the newest good one in its folder is {good}"
    return CheckpointCorruptError(f"{error}. Nothing was restored; {advice}", error.file, error.offset)
