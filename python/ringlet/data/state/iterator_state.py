"""Saving and restoring iterators, with a check that the state belongs to an equal dataset."""

from __future__ import annotations

from typing import Any

from ringlet.data.graph.iteration_context import Graph, position_graph
from ringlet.data.graph.node import State
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.errors import FailedPreconditionError, InvalidArgumentError

VERSION = 1


def fingerprint(root: Graph) -> str:
    """Return a description of a graph: the names and plain settings of its operations, source first.

    Functions and numbers of threads are omitted, because they may change between saving and restoring.
    """
    settings: dict[str, Any] = getattr(root, "settings", {})
    own = f"{type(root).__name__}({', '.join(f'{name}={value}' for name, value in settings.items())})"
    inputs = [fingerprint(node) for node in root.inputs]
    if not inputs:
        return own
    return f"{inputs[0] if len(inputs) == 1 else '[' + ' | '.join(inputs) + ']'} -> {own}"


def saved(opened: PipelineHandle) -> State:
    """Return the state of an iterator."""
    return {"version": VERSION, "graph": fingerprint(position_graph(opened.graph)), **opened.get_state()}


def restored(opened: PipelineHandle, state: State) -> PipelineHandle:
    """Close a pipeline, and reopen its graph at a saved state."""
    _check(state, fingerprint(position_graph(opened.graph)))
    opened.close()
    fresh = PipelineHandle(opened.graph)
    try:
        fresh.set_state(state)
    except BaseException:
        fresh.close()
        raise
    return fresh


def _check(state: Any, graph: str) -> None:
    if not isinstance(state, dict) or not {"version", "graph", "run", "stream"}.issubset(state):
        raise InvalidArgumentError(
            f"the argument of set_state must be a result of get_state of an iterator, got {state!r}"
        )
    if state["version"] != VERSION:
        raise InvalidArgumentError(
            f"this state of an iterator has version {state['version']}, but this release of ringlet reads version "
            f"{VERSION}. Restore the state with the release that saved it."
        )
    if state["graph"] != graph:
        raise FailedPreconditionError(
            f"this state was saved by an iterator of another dataset:\n  saved: {state['graph']}\n  here:  {graph}\n"
            "Build the dataset as it was when saved, or start a new iterator."
        )
