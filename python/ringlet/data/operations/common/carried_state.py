"""CarriedState: the state that `reduce` and `scan` pass from element to element."""

from __future__ import annotations

from typing import Any

from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.spec_inference import spec_of
from ringlet.errors import InvalidArgumentError
from ringlet.nest import PyTreeSpec, describe, flatten


class CarriedState:
    """A nest of arrays that keeps its structure and its dtypes; shapes may change."""

    def __init__(self, initial: Nest, where: str) -> None:
        self.value = detached(as_element(initial))
        leaves, shape = flatten(self.value)
        self._shape: PyTreeSpec = shape
        self._dtypes = [_dtype(leaf) for leaf in leaves]
        self._where = where

    def update(self, answer: Nest) -> None:
        """Set the next state; raise an error if its structure or a dtype differs from the initial state."""
        if answer is None:
            raise TypeError(f"{self._where} must return the next state, but returned None. Add a return statement.")
        element = as_element(answer)
        leaves, shape = flatten(element)
        if shape != self._shape:
            raise InvalidArgumentError(
                f"the state that {self._where} returns must have the structure of the initial state, "
                f"{describe(self._shape)}, but has {describe(shape)}"
            )
        for leaf, wanted in zip(leaves, self._dtypes, strict=True):
            found = _dtype(leaf)
            if found != wanted:
                raise TypeError(
                    f"the state that {self._where} returns must have the dtypes of the initial state: expected "
                    f"{wanted}, got {found}. Convert it, or start with a state such as np.{found}(0)."
                )
        self.value = detached(element, self.value)


def _dtype(leaf: Any) -> Any:
    return spec_of(leaf).dtype
