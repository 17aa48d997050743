"""JSON codec for return values that are sent to other processes: data only, never code."""

from __future__ import annotations

import base64
import json
from pathlib import Path, PurePath
from typing import Any

__all__ = ["from_text", "to_text"]

_PLAIN = (type(None), bool, int, float, str)


def to_text(value: Any) -> str:
    """Encode a value; raise TypeError if it contains an object of a type that :func:`from_text` does not return."""
    return json.dumps(_node(value))


def from_text(text: str) -> Any:
    """Decode the output of :func:`to_text`."""
    return _value(json.loads(text))


def _node(value: Any) -> Any:
    """Return the JSON form of a value: a plain value itself, any other value as a list of type and content."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, PurePath):
        return ["path", str(value)]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode("ascii")]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_node(each) for each in value]]
    if type(value) is dict and all(type(key) is str for key in value):
        return ["dict", {key: _node(each) for key, each in value.items()}]
    raise TypeError(
        f"{value!r} of type {type(value).__name__} cannot be sent to other processes: return None, numbers, text, "
        "bytes, paths, or lists, tuples and dictionaries of these, such as the path of a file that each process reads"
    )


def _value(node: Any) -> Any:
    if not isinstance(node, list):
        return node
    kind, content = node
    if kind == "path":
        return Path(content)
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "dict":
        return {key: _value(each) for key, each in content.items()}
    values = [_value(each) for each in content]
    return values if kind == "list" else tuple(values)
