"""all_equal: whether all replicas hold the same, and if not, who holds what, and where."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from ringlet import nest
from ringlet.errors import ValuesDifferError
from ringlet.rank_zero.process_exchange import Exchange, everybody
from ringlet.rank_zero.process_role import local_replica
from ringlet.rank_zero.value_diff import Difference, differences_between, listed
from ringlet.rank_zero.value_digest import Snapshot
from ringlet.values import DistributedValues

__all__ = ["all_equal"]

_MOST_SHOWN = 8


def all_equal(value: Any, name: str = "the value") -> Literal[True]:
    """Check that all replicas hold the same: weights, for instance, that should never have drifted apart.

    All replicas call this together, inside of ``strategy.run``; or all processes do, outside. There the components of
    distributed values and variables are compared, too. Processes without a strategy are found by ``TF_CONFIG`` or
    ``RINGLET_RANK``.

    Parameters
    ----------
    value : nested structure
        Of arrays of any library, variables, numbers, text, bytes and None. Compared bit for bit, shapes and dtypes
        included; all NaNs count as one value. Of containers, the names and numbers of what they hold are compared: a
        list is like a tuple, and the order of names does not matter.
    name : str
        What messages call it.

    Returns
    -------
    bool
        True: where anything differs, this raises.

    Raises
    ------
    ValuesDifferError
        On all of them: names the leaf, the first index at which it differs, who differs from most of the others, and
        what each holds there.
    TypeError
        On all of them, if something in it cannot be compared.

    Notes
    -----
    A digest of 16 bytes is exchanged, and more only once something differs. Reading the arrays takes about as long as
    hashing them, a second for each GB.

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
    Look for what each of them does for itself: random numbers, data, updates that are not combined.
    ...
    """
    is_replica = local_replica() is not None
    components = [value] if is_replica else _components(value)
    who = "replica" if is_replica or len(components) > 1 else "worker"

    def talk(exchange: Exchange, snapshots: list[Snapshot]) -> None:
        _compare(exchange, snapshots, name, who)

    everybody("checks.all_equal", [Snapshot(component) for component in components], talk)
    return True


def _components(value: Any) -> list[Any]:
    """What each replica of this process has of a value; the value itself where nothing in it is distributed."""
    counts = {len(leaf.values) for leaf in nest.flatten(value)[0] if isinstance(leaf, DistributedValues)}
    return [nest.map_structure(partial(_component, i), value) for i in range(max(counts))] if counts else [value]


def _component(number: int, leaf: Any) -> Any:
    """One component, of variables too, which replicas otherwise use as a whole."""
    return leaf.values[number] if isinstance(leaf, DistributedValues) else leaf


def _compare(exchange: Exchange, snapshots: list[Snapshot], name: str, who: str) -> None:
    told = exchange([b"" if each.refusal is None else str(each.refusal).encode() for each in snapshots])
    own = next((each.refusal for each in snapshots if each.refusal is not None), None)
    if own is not None:
        raise own
    for number, text in enumerate(told):
        if text:
            raise TypeError(f"{name} of {who} {number}: {text.decode()}")
    if len(set(exchange([each.digest for each in snapshots]))) == 1:
        return
    found = differences_between(exchange, snapshots, who)
    raise _error(found, name, who, len(told))


def _error(found: list[Difference], name: str, who: str, count: int) -> ValuesDifferError:
    lines = [f"  {difference.text}" for difference in found[:_MOST_SHOWN]]
    if len(found) > _MOST_SHOWN:
        lines.append(
            f"  and {len(found) - _MOST_SHOWN} more: {listed([each.path for each in found[_MOST_SHOWN:]])[:200]}"
        )
    text = "\n".join(
        [
            f"{name}: not the same on all {count} {who}s",
            *lines,
            "Look for what each of them does for itself: random numbers, data, updates that are not combined.",
        ]
    )
    ranks = tuple(sorted({rank for difference in found for rank in difference.ranks}))
    return ValuesDifferError(text, ranks, found[0].path, found[0].index, found[0].values)
