"""PartitionSpec: which axes of a mesh divide which dimensions of an array."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError

Entry = str | Iterable[str] | None
SPEC_NAMES = ("PartitionSpec", "P")  # the name of JAX's class, which depends on the version


@dataclass(frozen=True, init=False, repr=False)
class PartitionSpec:
    """The axes of a mesh that divide each dimension of an array.

    Parameters
    ----------
    *entries : str, iterable of str other than a set, or None
        For each dimension, the axis that divides it, several axes with the slowest first, or None. Omitted trailing
        dimensions are not divided.
    unreduced : iterable of str, optional
        Axes over which the array has yet to be summed; their order makes no difference.

    Attributes
    ----------
    entries : tuple of tuple of str
        The axes for each dimension.
    unreduced : tuple of str
        The unreduced axes, sorted.

    Raises
    ------
    ShardingError
        If an entry has the wrong type, or an axis is named twice.

    References
    ----------
    jax-ml/jax, ``jax.sharding.PartitionSpec``: the same entries have the same meaning.

    Examples
    --------
    >>> PartitionSpec("x", None, ("y", "z"))
    PartitionSpec('x', None, ('y', 'z'))
    """

    entries: tuple[tuple[str, ...], ...]
    unreduced: tuple[str, ...]

    def __init__(self, *entries: Entry, unreduced: Iterable[str] = ()) -> None:
        object.__setattr__(self, "entries", tuple(map(_axes, entries)))
        object.__setattr__(
            self, "unreduced", tuple(sorted(_axes([*unreduced] if isinstance(unreduced, Set) else unreduced)))
        )
        named = self.axes
        twice = next((axis for axis in named if named.count(axis) > 1), None)
        if twice is not None:
            raise ShardingError(
                f"{self} names the axis {twice!r} {named.count(twice)} times: an axis can divide one dimension only, "
                "so name it once"
            )

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of all entries, in order, then the unreduced axes."""
        return sum(self.entries, ()) + self.unreduced

    def __repr__(self) -> str:
        shown = [repr(axes[0] if len(axes) == 1 else axes or None) for axes in self.entries]
        shown += [f"unreduced={self.unreduced!r}"] if self.unreduced else []
        return f"PartitionSpec({', '.join(shown)})"


def _axes(entry: object) -> tuple[str, ...]:
    if entry is None or isinstance(entry, str):
        return () if entry is None else (entry,)
    if type(entry).__name__ in SPEC_NAMES:
        raise ShardingError(
            f"{entry} is a whole PartitionSpec, where the axes of one dimension are expected: write "
            f"NamedSharding(mesh, {entry})"
        )
    axes: tuple[Any, ...] = tuple(entry) if isinstance(entry, Iterable) else (entry,)
    # Sets are rejected, because their iteration order differs between processes.
    if isinstance(entry, Set) or not all(isinstance(axis, str) for axis in axes):
        raise ShardingError(
            f"{shortened(entry)} is not an entry of a PartitionSpec: expected the name of an axis, a tuple of "
            "names, or None "
            'for an undivided dimension, as in PartitionSpec("x", None, ("y", "z"))'
        )
    return axes
