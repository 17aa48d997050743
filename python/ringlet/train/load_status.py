"""Result of a restore: the matched and unmatched names of the file and the program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
_MOST_SHOWN = 10
S = TypeVar("S", bound="CheckpointLoadStatus")


class Matches:
    """Names that a restore matched, and names only in the file; unless quiet, its deletion logs a warning about these.

    It refers to no object that refers to it, because a reference cycle would delay its deletion.
    """

    def __init__(self, path: str, matched: set[str], unexpected: set[str]) -> None:
        self.path, self.matched, self.unexpected = path, matched, unexpected
        self.is_quiet = False

    def found_place(self, names: Sequence[str]) -> None:
        """Record that values were restored after ``restore`` had returned."""
        self.matched.update(names)
        self.unexpected.difference_update(names)

    def __del__(self) -> None:
        if not self.is_quiet and self.unexpected:
            _log.warning(
                "these values of the checkpoint %s were not restored, because the program has no objects with these "
                "names: %s. status.expect_partial() silences this warning",
                self.path,
                listed(self.unexpected),
            )


class CheckpointLoadStatus:
    """Status of a restore, with checks of the match (TensorFlow's class of this name). Returned by ``restore``.

    A value that is only in the file is restored when a Checkpoint gets an attribute of that name. Values never restored
    are logged as a warning once the status and the Checkpoint are deleted, unless :meth:`expect_partial` was called.

    Examples
    --------
    >>> import tempfile, ringlet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ringlet.train.Checkpoint(a=1, b=2).save(f"{folder}/ckpt")
    ...     status = ringlet.train.Checkpoint(a=0).restore(path).expect_partial()
    >>> _ = status.assert_existing_objects_matched()
    >>> status.assert_consumed()
    Traceback (most recent call last):
    AssertionError: Unresolved object in checkpoint: b. ...
    """

    def __init__(self, matches: Matches, present: Callable[[], Sequence[str]]) -> None:
        self._matches = matches
        self._present = present

    def assert_consumed(self: S) -> S:
        """Check that every value of the file was restored and that every object of the program is in the file.

        Returns
        -------
        CheckpointLoadStatus
            This status, for chaining.

        Raises
        ------
        AssertionError
            If the check fails; the message names the differences.
        """
        self.assert_existing_objects_matched()
        if self._matches.unexpected:
            raise AssertionError(
                f"Unresolved object in checkpoint: {listed(self._matches.unexpected)}. "
                f"{self._matches.path} has values with these names, but the program has no such objects: create them, "
                "or, to restore only some of the values, call expect_partial() instead of assert_consumed()"
            )
        return self

    def assert_existing_objects_matched(self: S) -> S:
        """Check that every object of the program is in the file.

        Returns
        -------
        CheckpointLoadStatus

        Raises
        ------
        AssertionError
            If the check fails; the message names the missing objects.
        """
        missing = [name for name in self._present() if name not in self._matches.matched]
        if missing:
            raise AssertionError(
                f"Found {len(missing)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program: {listed(missing)}. They are not in {self._matches.path}, so they "
                "keep their values"
            )
        return self

    def assert_nontrivial_match(self: S) -> S:
        """Check that at least one value was restored.

        Returns
        -------
        CheckpointLoadStatus

        Raises
        ------
        AssertionError
            If no value was restored.
        """
        if not self._matches.matched:
            raise AssertionError(
                f"Nothing except the root object matched a checkpointed value. {self._matches.path} contains: "
                f"{listed(self._matches.unexpected) or 'nothing'}. The program contains: "
                f"{listed(self._present()) or 'nothing'}. Use the attribute names of the program that saved the "
                "checkpoint"
            )
        return self

    def expect_partial(self: S) -> S:
        """Silence the warning about values that were not restored.

        Returns
        -------
        CheckpointLoadStatus
        """
        self._matches.is_quiet = True
        return self

    def run_restore_ops(self) -> None:
        """Do nothing: values were restored already, as in TensorFlow's eager execution.

        Examples
        --------
        >>> import tempfile, ringlet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = ringlet.train.Checkpoint(step=3).save(f"{folder}/ckpt")
        ...     ringlet.train.Checkpoint(step=0).restore(path).run_restore_ops()
        """

    def initialize_or_restore(self) -> None:
        """Do nothing: variables are initialized when created, as in TensorFlow's eager execution.

        Examples
        --------
        >>> import ringlet
        >>> ringlet.train.Checkpoint(step=3).restore(None).initialize_or_restore()
        """


class InitializationOnlyStatus(CheckpointLoadStatus):
    """Status of restoring from None: nothing was restored (TensorFlow's class of this name). Returned by ``restore``.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.train.Checkpoint(step=3).restore(None).assert_consumed()
    Traceback (most recent call last):
    AssertionError: No checkpoint specified (save_path=None); nothing is being restored.
    """

    def __init__(self) -> None:
        super().__init__(Matches("", set(), set()), tuple)

    def assert_consumed(self: S) -> S:
        """Raise an AssertionError, because there was no checkpoint."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_consumed
    assert_nontrivial_match = assert_consumed

    def run_restore_ops(self) -> None:
        """Raise an AssertionError, because there was no checkpoint.

        Raises
        ------
        AssertionError
            Always.
        """
        raise AssertionError(
            "No checkpoint specified, so nothing can be restored (save_path=None): pass a path to restore(), or call "
            "initialize_or_restore()"
        )


def listed(names: Any) -> str:
    """Return names as sorted text, truncated after the first ten."""
    names = sorted(names)
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more
