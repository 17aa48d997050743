"""What the workers of one distributed dataset tell each other while each of them reads a share of its own.

A worker that ended, failed or reads something else must never leave the others waiting, or mix what does not belong
together. So at the first element all of them compare what it looks like, and with each step that they count they hear
of an error of one of them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np

from ringlet.data.distribution.input_placement import Place
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.nest import flatten

__all__ = ["Others", "kind_of_element"]

# Added to a count that says an error has happened: no sum of counts makes up for it.
_FAILED = -(1 << 48)


def kind_of_element(element: Nest) -> str:
    """Write what must be the same on all workers: the structure, and the dtype and number of dimensions of each array.

    Sizes are not: batches may be short, and padded to other lengths.

    Examples
    --------
    >>> kind_of_element((np.zeros((4, 3)), {"label": np.zeros(4, "int64")}))
    "[0]: float64[*, *], [1]['label']: int64[*]"
    """
    kinds = [_kind_of_leaf(leaf) for leaf in flatten(element)[0]]
    return ", ".join(f"{path}: {kind}" if path else kind for path, kind in zip(paths(element), kinds, strict=True))


def _kind_of_leaf(leaf: Any) -> str:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return type(leaf).__name__
    ndim = len(getattr(leaf, "shape", ()))
    name = "text" if isinstance(dtype, np.dtype) and dtype.kind in "US" else str(dtype)
    return f"{name}[{', '.join('*' * ndim)}]"


class Others:
    """The other workers, for one iteration.

    Parameters
    ----------
    place : Place
    counts : bool
        Whether this worker's steps are counted together with those of the others.

    Attributes
    ----------
    counts : bool
        Whether any worker's are.

    Examples
    --------
    >>> others = Others(Place(2, 2, 0, lambda count: count + 1), True)
    >>> others.total(2)
    3
    """

    __slots__ = ("_has_agreed", "_place", "counts")

    def __init__(self, place: Place, counts: bool) -> None:
        self._place = place
        self._has_agreed = place.exchange is None or place.num_workers == 1
        self.counts = counts

    def agree(self, element: Nest, has_one: bool) -> None:
        """See at the first step that all workers have elements of one kind, or none.

        Raises
        ------
        CollectiveMismatchError
            On all workers, if they differ; it says who has what.
        CollectiveAborted
            If another worker's dataset has raised an exception.
        """
        if self._has_agreed:
            return
        kind = kind_of_element(element) if has_one else None
        told = self._exchanged({"kind": kind, "counts": self.counts})
        self._has_agreed = True
        self.counts = any(each["counts"] for each in told)
        kinds = {number: each["kind"] for number, each in enumerate(told) if each["kind"] is not None}
        if len(set(kinds.values())) > 1:
            listed = "\n".join(f"  worker {number}: {text}" for number, text in kinds.items())
            raise CollectiveMismatchError(
                f"the workers' datasets do not give elements of one kind:\n{listed}\nMake the same dataset on every "
                "worker; what each of them reads may differ, structure, dtypes and numbers of dimensions may not."
            )

    def total(self, count: int) -> int:
        """Give the sum of a count over all workers, which all of them call together.

        Raises
        ------
        CollectiveAborted
            If another worker's dataset has raised an exception.
        """
        total = self._place.sum(count)
        if total < 0:
            self._exchanged({})
        return total

    def tell(self, error: Exception) -> None:
        """Have the others raise what this worker's dataset has raised, where they wait for its next step."""
        if self._place.exchange is None or self._place.num_workers == 1 or (self._has_agreed and not self.counts):
            return  # nobody waits
        with suppress(Exception):  # they are gone, or do something else: what went wrong first counts
            if self._has_agreed:
                self._place.sum(_FAILED)
            self._exchange({"error": f"{type(error).__name__}: {error}"})

    def _exchange(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._place.exchange is not None
        return [json.loads(each) for each in self._place.exchange(json.dumps(told).encode("ascii"))]

    def _exchanged(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        """What all workers tell; raises if it is an error of one."""
        answers = self._exchange(told)
        for number, each in enumerate(answers):
            if "error" in each:
                raise CollectiveAborted(
                    f"the dataset of worker {number} raised {each['error']}. No worker has this step; see that one's "
                    "own log"
                )
        return answers
