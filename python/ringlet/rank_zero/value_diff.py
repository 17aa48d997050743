"""Differences between the values of replicas: the leaf, the index, and the value of each replica."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.rank_zero.process_exchange import Exchange
from ringlet.rank_zero.value_digest import ValueDigest

# Maximum number of leaves in which the first differing element is searched for.
_MOST_LOCATED = 8
_ABSENT = ""


@dataclass(frozen=True)
class Difference:
    """A leaf that differs between replicas; `ranks` are the replicas that do not have its most frequent value.

    `index` is the index of the first differing element of an array, or None if it was not determined, for example
    because shapes differ. `values` holds the value of each rank: that element, a string, a shape and dtype, or a
    digest.
    """

    path: str
    ranks: tuple[int, ...]
    index: tuple[int, ...] | None
    values: dict[int, Any]
    text: str


def differences_between(exchange: Exchange, digests: list[ValueDigest], kind: str) -> list[Difference]:
    """Return all leaves that differ; all processes must make this call. `kind` is the word for a rank in messages."""
    tables = [json.loads(row) for row in exchange([json.dumps(each.table).encode() for each in digests])]
    rows = [{path: (form, digest) for path, form, digest in table} for table in tables]
    paths = list(dict.fromkeys(path for row in rows for path in row))
    differing = [path for path in paths if len({row.get(path) for row in rows}) > 1]
    same_form = [path for path in differing if len({row.get(path, (_ABSENT, ""))[0] for row in rows}) == 1]
    located = _locate(exchange, digests, same_form[:_MOST_LOCATED])
    found = []
    for path in differing:
        forms = [row.get(path, (_ABSENT, ""))[0] for row in rows]
        if path in located:
            index, values = located[path]
            found.append(_difference(path, forms[0], index, values, kind=kind))
        elif path in same_form:
            found.append(_difference(path, forms[0], None, [row[path][1] for row in rows], kind=kind))
        else:
            shown = [form or "no value" for form in forms]
            found.append(_difference(path, "", None, shown, kind=kind))
    return found


def _locate(
    exchange: Exchange, digests: list[ValueDigest], paths: list[str]
) -> dict[str, tuple[tuple[int, ...] | None, list[Any]]]:
    """Return, for each leaf in `paths`, the index of the first element that differs, and its values by rank.

    The leaves have equal shapes and dtypes; for text, the index is None. The search compares digests of pieces first,
    then the elements of a piece.
    """
    piece_digests = _exchanged(exchange, [[_piece_digests(each, path) for path in paths] for each in digests])
    pieces = [_first_unlike([row[i] for row in piece_digests]) for i in range(len(paths))]
    places = list(zip(paths, pieces, strict=True))
    contents = _exchanged(exchange, [[_content(each, path, piece) for path, piece in places] for each in digests])
    located: dict[str, tuple[tuple[int, ...] | None, list[Any]]] = {}
    for i, (path, piece) in enumerate(places):
        leaf = digests[0].leaves[path]
        if leaf.array is None:
            located[path] = None, [row[i] for row in contents]
        else:
            located[path] = leaf.first_difference(piece, [base64.b64decode(row[i]) for row in contents])
    return located


def _exchanged(exchange: Exchange, rows: list[Any]) -> list[Any]:
    return [json.loads(row) for row in exchange([json.dumps(row).encode() for row in rows])]


def _piece_digests(value: ValueDigest, path: str) -> list[str]:
    leaf = value.leaves[path]
    return [] if leaf.array is None else leaf.piece_digests()


def _content(value: ValueDigest, path: str, piece: int) -> str:
    leaf = value.leaves[path]
    return leaf.shown if leaf.array is None else base64.b64encode(leaf.piece(piece)).decode("ascii")


def _first_unlike(rows: Sequence[Sequence[str]]) -> int:
    return next((number for number, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1), 0)


def _difference(path: str, form: str, index: tuple[int, ...] | None, values: list[Any], *, kind: str) -> Difference:
    groups: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        groups.setdefault(_key_of(value), []).append(rank)
    most = max(groups.values(), key=lambda ranks: (len(ranks), -ranks[0]))
    others = [ranks for ranks in groups.values() if ranks is not most]
    shown = [*others[:4], most] if len(most) > 1 else sorted(groups.values())[:5]
    described = [
        f"{kind}{'s' if len(ranks) > 1 else ''} {join_words(ranks)} {'have' if len(ranks) > 1 else 'has'} "
        f"{_shown(values[ranks[0]])}"
        for ranks in shown
    ]
    what = ", ".join(each for each in (path, form) if each)
    place = f"at [{', '.join(map(str, index))}] " if index else ""
    text = f"{what}{': ' if what else ''}{place}{', '.join(described[:-1])}, and {described[-1]}"
    ranks = tuple(sorted(rank for each in others for rank in each))
    return Difference(path, ranks, index, dict(enumerate(values)), text)


def _key_of(value: Any) -> str:
    return value.tobytes().hex() if hasattr(value, "tobytes") else str(value)


def _shown(value: Any) -> str:
    return repr(value.item()) if isinstance(value, (np.str_, np.bytes_)) else str(value)


def join_words(items: Sequence[Any]) -> str:
    """Join items with commas and a final "and"."""
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
