"""Check for state of user functions, which an iterator cannot save."""

from __future__ import annotations

import dataclasses
import warnings

from ringlet.data.graph.iteration_context import Graph, graph_nodes
from ringlet.data.graph.node import Node
from ringlet.data.operations.with_options import options_of
from ringlet.data.policies import ExternalStatePolicy
from ringlet.data.state.stateful_functions import state_read_by
from ringlet.errors import FailedPreconditionError

_REMEDY = (
    "Draw random numbers from a seed in the element; or, if the functions have no state, set "
    "options.experimental_external_state_policy to IGNORE."
)


def check_external_state(graph: Graph) -> None:
    """Warn or raise an error before an iterator is saved, according to the options of its dataset.

    Without a policy, raises FailedPreconditionError if the code of a function that computes elements reads a variable
    or draws random numbers.
    """
    for node in [graph] if isinstance(graph, Node) else graph.inputs:
        policy = options_of(node).experimental_external_state_policy
        if policy is ExternalStatePolicy.IGNORE or not node.runs_user_code:
            continue
        if policy is None:
            found = _state_of(node)
            if found is not None:
                raise FailedPreconditionError(f"{found}, but this state is not saved with the iterator. {_REMEDY}")
            continue
        what = (
            "elements of this dataset are computed by user functions or iterables, which may have state (a random "
            "number generator, a file). That state is not saved with the iterator."
        )
        if policy is ExternalStatePolicy.FAIL:
            raise FailedPreconditionError(f"{what} {_REMEDY}")
        warnings.warn(what, stacklevel=3)


def _state_of(root: Node) -> str | None:
    """Return a description of the external state that a function of a graph uses, or None."""
    for node in graph_nodes(root):
        for field in dataclasses.fields(node) if node.runs_user_code else ():
            value = getattr(node, field.name)
            found = state_read_by(value) if callable(value) and not isinstance(value, type) else None
            if found is not None:
                return f"{getattr(value, '__qualname__', repr(value))} of {type(node).__name__} is stateful: {found}"
    return None
