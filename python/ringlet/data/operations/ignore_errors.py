"""Dataset.ignore_errors: the elements that raise no exception."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, Stream

_log = logging.getLogger(__name__)


def ignore_errors(self: Dataset, log_warning: bool = False, name: str | None = None) -> Dataset:
    """Drop elements that raise an exception.

    Parameters
    ----------
    log_warning : bool, default False
        Whether to log each dropped element at level WARNING.
    name : str, unused

    Returns
    -------
    Dataset
        Its cardinality is unknown. If an element of a batch fails, the whole batch is dropped. To drop only the failed
        element, ignore errors before the batch.

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
class IgnoreErrors(ElementTransform):
    """Node that drops the elements of its input that raise an exception."""

    log_warning: bool

    cardinality = UNKNOWN_CARDINALITY

    def open_elements(self, context: IterationContext) -> Stream:
        return IgnoreErrorsElements(self, context)


class IgnoreErrorsElements(InputStream):
    """Stream of its input without the elements that raise an exception."""

    def __next__(self) -> Nest:
        while True:
            try:
                return next(self._input)
            except StopIteration:
                raise
            except Exception as error:
                if self._node.log_warning:
                    _log.warning("dropped an element: %s: %s", type(error).__name__, error)
