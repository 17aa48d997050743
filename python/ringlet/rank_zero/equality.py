"""all_equal: checks that all replicas hold equal values, and reports the replicas that differ."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from ringlet import nest
from ringlet.errors import ValuesDifferError
from ringlet.rank_zero.process_exchange import Exchange, call_with_exchange
from ringlet.rank_zero.process_role import local_replica
from ringlet.rank_zero.value_diff import Difference, differences_between, join_words
from ringlet.rank_zero.value_digest import ValueDigest
from ringlet.values import DistributedValues

_MOST_SHOWN = 8


def all_equal(value: Any, name: str = "the value") -> Literal[True]:
    """Check that all replicas hold the same value, such as weights that must not diverge.

    Inside ``strategy.run``, all replicas make this call. Elsewhere, all processes make this call, and the components of
    distributed values and variables are also compared. Without a strategy, ``TF_CONFIG`` or ``RINGLET_RANK`` defines
    the processes.

    Parameters
    ----------
    value : nested structure
        Arrays of any library, variables, numbers, text, bytes and None. Values are compared bit for bit, including
        shapes and dtypes; all NaNs are equal. Containers are compared by the names and indices of their contents: a
        list equals a tuple, and the order of names does not matter.
    name : str
        Name of the value in messages.

    Returns
    -------
    bool
        Always True: differences raise an error.

    Raises
    ------
    ValuesDifferError
        On all replicas; the message names the leaf, the first differing index, and the values of replicas at that
        index.
    TypeError
        On all replicas, if the value contains objects that cannot be compared.

    Notes
    -----
    A digest of 16 bytes is exchanged, and more data only if it differs. The call reads and hashes the arrays, which
    takes about one second per GB.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> def step():
    ...     weights = {"w": np.zeros(3), "step": 7}
    ...     weights["w"][2] += ringlet.get_replica_context().replica_id_in_sync_group
    ...     ringlet.checks.all_equal(weights, "the weights")
    >>> strategy.run(step)
    Traceback (most recent call last):
    ringlet.errors.ValuesDifferError: the weights: not the same on all 2 replicas
      ['w'], float64[3]: at [2] replica 0 has 0.0, and replica 1 has 1.0
    Check what each of them computes independently: random numbers, data, updates that are not combined.
    ...
    """
    is_replica = local_replica() is not None
    components = [value] if is_replica else _components(value)
    kind = "replica" if is_replica or len(components) > 1 else "worker"

    def compare(exchange: Exchange, digests: list[ValueDigest]) -> None:
        _compare(exchange, digests, name, kind)

    call_with_exchange("checks.all_equal", [ValueDigest(component) for component in components], compare)
    return True


def _components(value: Any) -> list[Any]:
    """Return the values of the replicas of this process, or only `value` if it is not distributed."""
    counts = {len(leaf.values) for leaf in nest.flatten(value)[0] if isinstance(leaf, DistributedValues)}
    return [nest.map_structure(partial(_component, i), value) for i in range(max(counts))] if counts else [value]


def _component(number: int, leaf: Any) -> Any:
    return leaf.values[number] if isinstance(leaf, DistributedValues) else leaf


def _compare(exchange: Exchange, digests: list[ValueDigest], name: str, kind: str) -> None:
    errors = exchange([b"" if each.error is None else str(each.error).encode() for each in digests])
    own = next((each.error for each in digests if each.error is not None), None)
    if own is not None:
        raise own
    for number, text in enumerate(errors):
        if text:
            raise TypeError(f"{name} of {kind} {number}: {text.decode()}")
    if len(set(exchange([each.digest for each in digests]))) == 1:
        return
    found = differences_between(exchange, digests, kind)
    raise _error(found, name, kind, len(errors))


def _error(found: list[Difference], name: str, kind: str, count: int) -> ValuesDifferError:
    lines = [f"  {difference.text}" for difference in found[:_MOST_SHOWN]]
    if len(found) > _MOST_SHOWN:
        lines.append(
            f"  and {len(found) - _MOST_SHOWN} more: {join_words([each.path for each in found[_MOST_SHOWN:]])[:200]}"
        )
    text = "\n".join(
        [
            f"{name}: not the same on all {count} {kind}s",
            *lines,
            "Check what each of them computes independently: random numbers, data, updates that are not combined.",
        ]
    )
    ranks = tuple(sorted({rank for difference in found for rank in difference.ranks}))
    return ValuesDifferError(text, ranks, found[0].path, found[0].index, found[0].values)
