"""WorkerSync: synchronization of the workers of one distributed dataset that read separate shares.

A worker that has ended, has failed or reads a different dataset must not block the other workers, and elements of
different kinds must not be combined in one step. Therefore, all workers compare the kind of the first element, and the
exchange of counts in each step also reports errors.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np

from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.errors.exception_notes import class_and_text
from ringlet.nest import flatten

# The count that reports an error; so low that the sum of all counts is negative.
_FAILED = -(1 << 48)


def kind_of_element(element: Nest) -> str:
    """Describe the properties that must be equal on all workers: structure, dtypes and numbers of dimensions.

    Sizes may differ: batches may be short or padded to different lengths.
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


class WorkerSync:
    """Synchronization of the workers in one iteration; with `counts`, they add up their element counts in each step."""

    def __init__(self, place: InputPlacement, counts: bool) -> None:
        self._place = place
        self._has_agreed = place.exchange is None or place.num_workers == 1
        self.counts = counts

    def agree(self, element: Nest, has_one: bool) -> None:
        """Compare the workers' first elements; raise an error on all workers if `kind_of_element` differs.

        `counts` becomes True on all workers if it is True on one.
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
                f"the workers' datasets have elements of different structures:\n{listed}\nCreate the same dataset on "
                "every worker: values and sizes may differ, but structures, dtypes and numbers of dimensions must be "
                "equal."
            )

    def total(self, count: int) -> int:
        """Return the sum of a count over all workers; a collective call that raises the errors of other workers."""
        total = self._place.sum(count)
        if total < 0:
            self._exchanged({})
        return total

    def tell(self, error: Exception) -> None:
        """Report an exception of this worker's dataset; other workers raise CollectiveAborted at their next step."""
        if self._place.exchange is None or self._place.num_workers == 1 or (self._has_agreed and not self.counts):
            return  # no other worker waits for this worker
        with suppress(Exception):  # if other workers have left, the original error takes precedence
            if self._has_agreed:
                self._place.sum(_FAILED)
            self._exchange({"error": class_and_text(error)})

    def _exchange(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._place.exchange is not None
        return [json.loads(each) for each in self._place.exchange(json.dumps(told).encode("ascii"))]

    def _exchanged(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of all workers; raise CollectiveAborted if a worker reports an error."""
        answers = self._exchange(told)
        for number, each in enumerate(answers):
            if "error" in each:
                raise CollectiveAborted(
                    f"the dataset of worker {number} raised {each['error']}. No worker runs the step. See the log of "
                    f"worker {number}."
                )
        return answers
