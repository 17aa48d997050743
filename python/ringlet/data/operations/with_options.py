"""Settings of a dataset, and what they change in its graph."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringlet.data.dataset_options import Options
from ringlet.data.graph.node import Node, RowStream, Run, Stream, Transformation
from ringlet.data.operations.counts import AUTOTUNE

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["WithOptions", "options", "options_of", "with_options", "with_options_applied"]


def with_options(self: Dataset, options: Options, name: str | None = None) -> Dataset:
    """Make settings for the whole dataset, and for all that is made of it.

    Parameters
    ----------
    options : Options
        Copied: changing it later changes nothing. Settings that it makes win over those made before.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        The same elements.

    Raises
    ------
    TypeError
        If `options` is no Options.

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
    """Give the settings of this dataset and of those that it is made of; they cannot be changed.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(3).options()
    Options()
    """
    return options_of(self.node).frozen()


@dataclass(frozen=True, eq=False)
class WithOptions(Transformation):
    """The same elements, with settings for the whole graph."""

    options: Options = field(default_factory=Options)

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers."""
        return self.input.open_rows(run)

    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements."""
        return self.input.open(run)


def options_of(node: Node) -> Options:
    """Give the settings that a graph makes; where several do, those nearer to its end, and of later inputs, win.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> options_of(Dataset.range(3).node)
    Options()
    """
    found = Options()
    for source in node.inputs:
        found = found.merge(options_of(source))
    return found.merge(node.options.__copy__()) if isinstance(node, WithOptions) else found


def with_options_applied(node: Node) -> Node:
    """Give the graph with everything decided that its operations leave to the options of the dataset.

    These are fields of nodes: ``deterministic=None``, and ``num_parallel_calls=AUTOTUNE`` where the size of a pool of
    threads is set.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node = Dataset.range(3).batch(2).node
    >>> with_options_applied(node) is node
    True
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
