"""What is wrong in the description of a cluster: where, what was found, what is allowed, and how it is put right."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any

from ringlet.errors import ClusterConfigError

__all__ = ["ABSENT", "ClusterConfigJSONError", "ClusterConfigTypeError", "Fault", "corrected", "json_path", "shown"]

ABSENT: Any = object()  # there is nothing at that place, or no better value for it is known

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = 80


class ClusterConfigTypeError(ClusterConfigError, TypeError):
    """Something of another type stands where it cannot (TensorFlow raises ``TypeError``)."""


class ClusterConfigJSONError(ClusterConfigError, json.JSONDecodeError):
    """A text is no JSON (TensorFlow raises ``json.JSONDecodeError``).

    Attributes
    ----------
    msg, doc, pos, lineno, colno
        As ``json.JSONDecodeError`` has them.
    """

    def __init__(self, msg: str, doc: str, pos: int, advice: str = "") -> None:
        json.JSONDecodeError.__init__(self, msg, doc, pos)
        self.path = "$"
        self.advice = advice
        self.args = (f"{self.args[0]}. {advice}".rstrip(),)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.doc, self.pos, self.advice)


class Fault(Exception):
    """One thing that is wrong in a structure of dictionaries and lists.

    It never leaves this folder: `as_error` makes what users see.

    Parameters
    ----------
    text : str
        What is wrong, as TensorFlow says it where it says so; without the full stop.
    allowed : str
        What may stand there.
    keys : sequence of str and int
        The way to the place, from the outermost dictionary.
    found : object
        What stands there.
    instead : object
        What to put there, for an example; `ABSENT` if nobody can know.
    kind : type
        Class of the error.
    """

    def __init__(
        self,
        text: str,
        allowed: str,
        keys: Sequence[object] = (),
        *,
        found: object = ABSENT,
        instead: object = ABSENT,
        kind: type[ClusterConfigError] = ClusterConfigError,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.allowed = allowed
        self.keys = tuple(keys)
        self.found = found
        self.instead = instead
        self.kind = kind

    def below(self, *keys: object) -> Fault:
        """Give the same fault as one of a structure that stands at `keys` in another."""
        return Fault(
            self.text, self.allowed, (*keys, *self.keys), found=self.found, instead=self.instead, kind=self.kind
        )

    def as_error(self, source: str, example: str) -> ClusterConfigError:
        """Make the error that users see.

        Parameters
        ----------
        source : str
            What was read, such as ``"TF_CONFIG"``.
        example : str
            How it may be written.

        Returns
        -------
        ClusterConfigError
        """
        path = json_path(self.keys)
        found = "nothing" if self.found is ABSENT else shown(self.found)
        text = f"{self.text}. {source}, at {path}: found {found}; allowed: {self.allowed}. {example}"
        return self.kind(text.rstrip(), path)


def shown(value: object) -> str:
    """Write a value of any size in a few words.

    Examples
    --------
    >>> shown("worker"), len(shown("w" * 10**6))
    ("'worker'", 80)
    """
    return _shortener.repr(value)


def json_path(keys: Sequence[object]) -> str:
    """Write the way to a place in a structure as a JSON path.

    Examples
    --------
    >>> json_path(["cluster", "worker", 1]), json_path(["a job", "0"]), json_path([])
    ('$.cluster.worker[1]', "$['a job']['0']", '$')
    """
    path = "$"
    for key in keys:
        if isinstance(key, str) and key.isidentifier() and len(key) <= 80:
            path += f".{key}"
        else:
            path += f"[{shown(key)}]"
    return path


def corrected(whole: Any, fault: Fault) -> Any:
    """Give a copy of a structure in which the place of a fault has what the fault says; `ABSENT` if it says nothing."""
    if fault.instead is ABSENT:
        return ABSENT
    return _with(whole, fault.keys, fault.instead)


def _with(whole: Any, keys: tuple[Any, ...], value: object) -> Any:
    if not keys:
        return value
    first, *rest = keys
    if isinstance(whole, (list, tuple)):
        return [_with(item, tuple(rest), value) if i == first else item for i, item in enumerate(whole)]
    copy = dict(whole)
    copy[first] = _with(copy.get(first, {}), tuple(rest), value)
    return copy
