"""Saving and restoring iterators, with a check that the state belongs to an equivalent dataset."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.iteration_context import Graph, IterationContext, position_graph
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from ringlet.data.graph.node import State

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


def batches_read(opened: PipelineHandle, batches: Graph | None, num_steps: int) -> State:
    """Return the entries of a state from which another number of workers can continue.

    None are returned without `batches`, or for a negative `num_steps`, which is unknown.
    """
    if batches is None or num_steps < 0:
        return {}
    return {"batches": fingerprint(batches), "choices": opened.context.get_state(batches), "num_steps": num_steps}


def restored(opened: PipelineHandle, state: State, batches: Graph | None = None) -> PipelineHandle:
    """Close a pipeline, and return a new pipeline of its graph that continues at a saved state.

    If each step is one element of the dataset `batches`, a state from a different number of workers is accepted; the
    elements before the position are then computed again.
    """
    _check(state)
    graph = fingerprint(position_graph(opened.graph))
    context = None
    if state["graph"] != graph:
        if batches is None or state.get("batches") != fingerprint(batches):
            raise FailedPreconditionError(
                f"this state was saved by an iterator of another dataset:\n  saved: {state['graph']}\n  here:  "
                f"{graph}\nBuild the dataset as it was when the state was saved, or start a new iterator. The number "
                "of workers may differ only if each worker reads all batches, as under AutoShardPolicy.DATA."
            )
        context = IterationContext()
        context.set_state(batches, state["choices"])
    opened.close()
    fresh = PipelineHandle(opened.graph, context)
    try:
        if context is None:
            fresh.set_state(state)
        else:
            for _ in islice(fresh.stream, state["num_steps"]):
                pass
    except BaseException:
        fresh.close()
        raise
    return fresh


def _check(state: Any) -> None:
    if not isinstance(state, dict) or not {"version", "graph", "run", "stream"}.issubset(state):
        raise InvalidArgumentError(
            f"the argument of set_state must be a result of get_state() of an iterator, got {state!r}"
        )
    if state["version"] != VERSION:
        raise InvalidArgumentError(
            f"this state of an iterator has version {state['version']}, but this release of ringlet reads version "
            f"{VERSION}. Restore the state with the release that saved it."
        )
