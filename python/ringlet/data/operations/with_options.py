"""Dataset.with_options: options of a dataset, and their application to its graph."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from ringlet.data.dataset_options import Options
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import AUTOTUNE
from ringlet.data.graph.node import IterationContext, Node, RowStream, Stream, Transformation


def with_options(self: Dataset, options: Options, name: str | None = None) -> Dataset:
    """Set options for this dataset and all datasets derived from it.

    Parameters
    ----------
    options : Options
        Options are copied, so later changes have no effect. New settings other than defaults override earlier settings.
    name : str, unused

    Returns
    -------
    Dataset
        The same elements.

    Raises
    ------
    TypeError
        If `options` is not an Options object.

    Examples
    --------
    >>> from ringlet.data import Dataset, Options
    >>> options = Options()
    >>> options.deterministic = False
    >>> Dataset.range(3).with_options(options).batch(2).options()
    Options(deterministic=False)
    """
    if not isinstance(options, Options):
        raise TypeError(f"options must be a ringlet.data.Options, got {options!r} of type {type(options).__name__}")
    return type(self)(WithOptions(self.node, options.frozen()))


def options(self: Dataset) -> Options:
    """Return the options of this dataset and its inputs as a read-only object.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(3).options()
    Options()
    """
    return options_of(self.node).frozen()


@dataclass(frozen=True, eq=False)
class WithOptions(Transformation):
    """Node that sets options for the whole graph; it does not change the elements."""

    options: Options = field(default_factory=Options)

    def open_rows(self, context: IterationContext) -> RowStream:
        return self.input.open_rows(context)

    def open_elements(self, context: IterationContext) -> Stream:
        return self.input.open(context)


def options_of(node: Node) -> Options:
    """Return the options of a graph; options of later operations, or of later inputs, take precedence."""
    found = Options()
    for source in node.inputs:
        found = found.merge(options_of(source))
    return found.merge(node.options.__copy__()) if isinstance(node, WithOptions) else found


def with_options_applied(node: Node) -> Node:
    """Return the graph with the options applied to its operations.

    Options replace ``deterministic=None`` in nodes, and ``num_parallel_calls=AUTOTUNE`` if `private_threadpool_size` is
    set.
    """
    options = options_of(node)
    decided: dict[tuple[str, Any], Any] = {}
    if options.deterministic is not None:
        decided["deterministic", None] = options.deterministic
    if options.threading.private_threadpool_size:
        decided["num_parallel_calls", AUTOTUNE] = options.threading.private_threadpool_size
    return _decided(node, decided, {}) if decided else node


def _decided(node: Node, decided: dict[tuple[str, Any], Any], done: dict[int, Node]) -> Node:
    if id(node) not in done:
        inputs = [_decided(source, decided, done) for source in node.inputs]
        is_new = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
        done[id(node)] = _with_fields(node.with_inputs(*inputs) if is_new else node, decided)
    return done[id(node)]


def _with_fields(node: Node, decided: dict[tuple[str, Any], Any]) -> Node:
    fields = {f.name for f in dataclasses.fields(node)}
    changes = {
        name: to for (name, left_open), to in decided.items() if name in fields and getattr(node, name) == left_open
    }
    return dataclasses.replace(node, **changes) if changes else node
