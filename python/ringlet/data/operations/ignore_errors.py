"""Elements without those that raise."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Downstream, Run, Stream
from ringlet.data.operations.element_transform import Rowless

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["IgnoreErrors", "ignore_errors"]

_log = logging.getLogger(__name__)


def ignore_errors(self: Dataset, log_warning: bool = False, name: str | None = None) -> Dataset:
    """Leave out the elements that raise an exception instead of being made.

    Parameters
    ----------
    log_warning : bool, default False
        Whether to log each of them at WARNING.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Only reading tells how many elements it has. A batch that cannot be made is left out whole: ignore errors in
        front of the batch to lose one element only.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_tensor_slices(["1", "x", "3"]).map(int)
    >>> [int(x) for x in dataset.ignore_errors()]
    [1, 3]
    """
    return type(self)(IgnoreErrors(self.node, bool(log_warning)))


@dataclass(frozen=True, eq=False)
class IgnoreErrors(Rowless):
    """The elements that can be made."""

    log_warning: bool

    @property
    def cardinality(self) -> int:
        """Unknown."""
        return UNKNOWN_CARDINALITY

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return IgnoreErrorsElements(self.input.open(run), self.log_warning)


class IgnoreErrorsElements(Downstream):
    """The elements of another stream, without its exceptions."""

    __slots__ = ("_log_warning",)

    def __init__(self, source: Stream, log_warning: bool) -> None:
        super().__init__(source)
        self._log_warning = log_warning

    def __next__(self) -> Nest:
        while True:
            try:
                return next(self._input)
            except StopIteration:
                raise
            except Exception as error:
                if self._log_warning:
                    _log.warning("an element is left out: %s: %s", type(error).__name__, error)
