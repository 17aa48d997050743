"""Configuration errors, which name the faulty value of a cluster configuration, the allowed values and a correction."""

from __future__ import annotations

import functools
import json
import operator
import reprlib
from collections.abc import Sequence
from typing import Any

from ringlet.errors import ClusterConfigError
from ringlet.errors.documented_names import shown_as

ABSENT: Any = object()  # marks a value that was not found, or a correction that is not known

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = 80


@shown_as(ClusterConfigError)
class ClusterConfigTypeError(ClusterConfigError, TypeError):
    """A configuration value has the wrong type (TensorFlow raises ``TypeError``)."""


@shown_as(ClusterConfigError)
class ClusterConfigJSONError(ClusterConfigError, json.JSONDecodeError):
    """A configuration is not valid JSON (TensorFlow raises ``json.JSONDecodeError``)."""

    def __init__(self, msg: str, doc: str, pos: int, advice: str = "") -> None:
        json.JSONDecodeError.__init__(self, msg, doc, pos)
        self.path = "$"
        self.advice = advice
        self.args = (f"{self.args[0]}. {advice}".rstrip(),)


class Fault(Exception):
    """A fault in a structure of dictionaries and lists; `as_error` converts it to the error for users.

    `text` is the message, TensorFlow's if TensorFlow reports this fault, without a full stop; `allowed` describes the
    correct values; `keys` is the path of the faulty value `found`; `instead` is an example of a correct value, or
    `ABSENT`; `renamed` is a correct name if the last key is faulty; `kind` is the class of the error.
    """

    def __init__(
        self,
        text: str,
        allowed: str,
        keys: Sequence[object] = (),
        *,
        found: object = ABSENT,
        instead: object = ABSENT,
        renamed: object = ABSENT,
        kind: type[ClusterConfigError] = ClusterConfigError,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.allowed = allowed
        self.keys = tuple(keys)
        self.found = found
        self.instead = instead
        self.renamed = renamed
        self.kind = kind

    def below(self, *keys: object) -> Fault:
        """Prepend `keys` to the path of this fault; return the fault."""
        self.keys = (*keys, *self.keys)
        return self

    def as_error(self, source: str, example: str) -> ClusterConfigError:
        """Return the error for users: `source` names the configuration, `example` ends the message."""
        path = json_path(self.keys)
        found = "nothing" if self.found is ABSENT else shown(self.found)
        text = f"{self.text}. {source}, at {path}: found {found}; allowed: {self.allowed}. {example}"
        return self.kind(text.rstrip(), path)


def shown(value: object) -> str:
    """Return a shortened repr of a value."""
    return _shortener.repr(value)


def json_path(keys: Sequence[object]) -> str:
    """Return the JSON path of a value."""
    path = "$"
    for key in keys:
        if isinstance(key, str) and key.isidentifier() and len(key) <= 80:
            path += f".{key}"
        else:
            path += f"[{shown(key)}]"
    return path


def corrected(whole: Any, fault: Fault) -> Any:
    """Return a copy of a structure with the faulty value corrected; `ABSENT` if no correction is known."""
    if fault.renamed is not ABSENT:
        *outer, wrong = fault.keys
        inner = functools.reduce(operator.getitem, outer, whole)
        return _with(whole, tuple(outer), {fault.renamed if key == wrong else key: inner[key] for key in inner})
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
