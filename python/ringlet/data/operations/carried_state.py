"""The state that a function of the user's hands from element to element, in `reduce` and `scan`."""

from __future__ import annotations

from typing import Any

from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import PyTreeSpec, describe, flatten

__all__ = ["FoldedState"]


class FoldedState:
    """A nest of arrays that keeps its structure and its dtypes; shapes may change.

    Parameters
    ----------
    initial : nest
    where : str
        What the messages name.

    Examples
    --------
    >>> folded = FoldedState(0, "reduce_func")
    >>> folded.update(5)
    >>> folded.value
    np.int64(5)
    """

    __slots__ = ("_dtypes", "_shape", "_where", "value")

    def __init__(self, initial: Nest, where: str) -> None:
        self.value = detached(as_element(initial))
        leaves, shape = flatten(self.value)
        self._shape: PyTreeSpec = shape
        self._dtypes = [_dtype(leaf) for leaf in leaves]
        self._where = where

    def update(self, answer: Nest) -> None:
        """Take over the next state, as the function gave it.

        Raises
        ------
        InvalidArgumentError
            If its structure differs from that of the first.
        TypeError
            If a dtype does.
        """
        element = as_element(answer)
        leaves, shape = flatten(element)
        if shape != self._shape:
            raise InvalidArgumentError(
                f"the state that {self._where} gives must have the structure of the initial state, "
                f"{describe(self._shape)}, and has {describe(shape)}"
            )
        for leaf, wanted in zip(leaves, self._dtypes, strict=True):
            found = _dtype(leaf)
            if found != wanted:
                raise TypeError(
                    f"the state that {self._where} gives must have the dtypes of the initial state: {wanted} is "
                    f"expected, and {found} was given. Convert it, or begin with a state such as np.{found}(0)."
                )
        self.value = detached(element, self.value)


def _dtype(leaf: Any) -> Any:
    return TensorSpec.from_array(leaf).dtype
