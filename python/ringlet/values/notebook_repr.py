"""Notebook representations: an HTML table of the components of a value, or of facts about an object."""

from __future__ import annotations

import html
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ringlet import context

_MOST_CHARACTERS = 80

# Colours are inherited from the page, for light and dark themes.
_CELL = "padding: 0.2em 0.8em; text-align: left; border-bottom: 1px solid; border-color: inherit"

_short = reprlib.Repr()
_short.maxother = _short.maxstring = _MOST_CHARACTERS

Row = tuple[str, str, str, str, str]


def title_of(value: Any, count: int) -> str:
    """Return the caption of a value's table."""
    kind = type(value)
    replicas = f"of {count} replica{'s' if count > 1 else ''}"
    # Looked up on the class, because a Mirrored forwards the attributes of its value.
    if not hasattr(kind, "synchronization"):
        return f"{kind.__name__} {replicas}"
    how = f"synchronization {value.synchronization.name}, aggregation {value.aggregation.name}"
    return f"{kind.__name__} '{value.name}' {replicas}, {how}"


def values_table(title: str, components: Sequence[Any]) -> str:
    """Return components as an HTML table without scripts, style sheets or URLs; their text is escaped."""
    devices = _devices(components)
    rows = [_row(i, device, part) for i, (device, part) in enumerate(zip(devices, components, strict=True))]
    names = ("replica", "device", "type", "shape", "value")
    head = "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in names)
    return _table(title, f"<thead><tr>{head}</tr></thead>", ("".join(map(_cell, row)) for row in rows))


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Return facts about an object as an HTML table of names and strings; escape both, and shorten long strings."""
    rows = (f'<th scope="row" style="{_CELL}">{html.escape(n)}</th>{_cell(_cut(str(it)))}' for n, it in facts.items())
    return _table(title, "", rows)


def _table(title: str, head: str, rows: Iterable[str]) -> str:
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<table style="border-collapse: collapse; color: inherit; background: transparent">'
        f'<caption style="text-align: left; color: inherit">{html.escape(title)}</caption>'
        f"{head}<tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{html.escape(text)}</td>'


def _devices(components: Sequence[Any]) -> list[str]:
    """Return each component's device, or its replica's in the current strategy, or "host memory"."""
    mode = context.current()
    try:
        of_strategy = () if mode is None else mode.strategy.extended.worker_devices
    except Exception:  # the strategy has no worker_devices
        of_strategy = ()
    if len(of_strategy) != len(components):
        of_strategy = ("",) * len(components)
    names = [_own_device(part) or name for part, name in zip(components, of_strategy, strict=True)]
    return [name.rpartition("/device:")[2] or "host memory" for name in names]


def _own_device(component: Any) -> str:
    # The device of NumPy arrays is always "cpu".
    device = None if isinstance(component, (np.ndarray, np.generic)) else _attribute(component, "device")
    return "" if device is None or callable(device) else str(device)


def _attribute(component: Any, name: str) -> Any:
    try:
        return getattr(component, name, None)
    except Exception:  # a user's property may raise any exception
        return None


def _row(replica: int, device: str, component: Any) -> Row:
    dtype, shape = _attribute(component, "dtype"), _attribute(component, "shape")
    kind = type(component).__name__ if dtype is None else str(getattr(dtype, "name", dtype))
    return str(replica), device, kind, "" if shape is None else str(shape), _preview(component)


def _preview(component: Any) -> str:
    try:
        if hasattr(type(component), "__array__"):
            array = np.asarray(component)
            text = np.array2string(array, threshold=6, edgeitems=3, precision=4, max_line_width=10**6)
        else:
            text = _short.repr(component)
    except Exception as error:
        text = f"(repr raised {type(error).__name__})"
    return _cut(text)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."
