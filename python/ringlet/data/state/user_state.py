"""What is not part of a saved iterator: what functions of the user keep."""

from __future__ import annotations

import warnings

from ringlet.data.graph.iteration_context import Graph
from ringlet.data.graph.node import Node
from ringlet.data.operations.with_options import options_of
from ringlet.data.policies import ExternalStatePolicy
from ringlet.errors import FailedPreconditionError

__all__ = ["check_external_state"]


def check_external_state(graph: Graph) -> None:
    """Warn or raise before an iterator is saved, as the options of its dataset say.

    Parameters
    ----------
    graph : Node or Plan
        What the iterator goes through.

    Raises
    ------
    FailedPreconditionError
        If functions make the elements, and the policy is FAIL.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> check_external_state(Dataset.range(3).node)
    """
    for node in [graph] if isinstance(graph, Node) else graph.inputs:
        policy = options_of(node).experimental_external_state_policy
        if policy not in (ExternalStatePolicy.WARN, ExternalStatePolicy.FAIL) or not node.runs_user_code:
            continue
        what = (
            "elements of this dataset are made by functions or iterables of its user, which may keep something of "
            "their own (a generator of random numbers, a file). That is not part of the state of the iterator."
        )
        if policy is ExternalStatePolicy.FAIL:
            raise FailedPreconditionError(
                f"{what} Draw random numbers from a seed that is in the element, or set "
                "options.experimental_external_state_policy to IGNORE if nothing is lost."
            )
        warnings.warn(what, stacklevel=3)
