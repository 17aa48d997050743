"""What the state of an iterator says about the dataset that it belongs to, and how states are checked."""

from __future__ import annotations

from typing import Any

from ringlet.data.graph.iteration_context import Graph, carried
from ringlet.data.graph.node import State
from ringlet.data.graph.pipeline_handle import Opened
from ringlet.errors import FailedPreconditionError, InvalidArgumentError

__all__ = ["VERSION", "fingerprint", "restored", "saved"]

VERSION = 1


def fingerprint(root: Graph) -> str:
    """Write down a graph: the names of its operations and their plain settings, the source first.

    Functions and numbers of threads are left out, so that they may change between saving and restoring.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> fingerprint(Dataset.range(5).map(abs, num_parallel_calls=2).take(3).node)
    'TableSource(rows=5, spec=TensorSpec(shape=(), dtype=int64)) -> Map() -> Take(count=3)'
    """
    settings: dict[str, Any] = getattr(root, "settings", {})
    own = f"{type(root).__name__}({', '.join(f'{name}={value}' for name, value in settings.items())})"
    inputs = [fingerprint(node) for node in root.inputs]
    if not inputs:
        return own
    return f"{inputs[0] if len(inputs) == 1 else '[' + ' | '.join(inputs) + ']'} -> {own}"


def saved(opened: Opened) -> State:
    """Give the state of an iterator.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> sorted(saved(Opened(Dataset.range(5).node)))
    ['graph', 'run', 'stream', 'version']
    """
    return {"version": VERSION, "graph": fingerprint(carried(opened.graph)), **opened.get_state()}


def restored(opened: Opened, state: State) -> Opened:
    """Close what is open, and open the same graph where a state was saved.

    Raises
    ------
    FailedPreconditionError
        If the state belongs to another graph.
    InvalidArgumentError
        If it is no state of an iterator, or one of a newer version.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node = Dataset.range(5).node
    >>> first = Opened(node)
    >>> next(first.stream), next(first.stream)
    (np.int64(0), np.int64(1))
    >>> next(restored(Opened(node), saved(first)).stream)
    np.int64(2)
    """
    _check(state, fingerprint(carried(opened.graph)))
    opened.close()
    fresh = Opened(opened.graph)
    try:
        fresh.set_state(state)
    except BaseException:
        fresh.close()
        raise
    return fresh


def _check(state: Any, graph: str) -> None:
    if not isinstance(state, dict) or not {"version", "graph", "run", "stream"}.issubset(state):
        raise InvalidArgumentError(f"set_state takes what get_state of an iterator gave, not {state!r}")
    if state["version"] != VERSION:
        raise InvalidArgumentError(
            f"this state of an iterator has version {state['version']}, and this release of ringlet reads version "
            f"{VERSION}: restore it with the release that saved it"
        )
    if state["graph"] != graph:
        raise FailedPreconditionError(
            f"this state was saved by an iterator of another dataset:\n  saved: {state['graph']}\n  here:  {graph}\n"
            "Build the dataset as it was built then, or start a new iterator."
        )
