"""Classes that tests of structures share: a registered node, dataclasses that are frozen, default and computing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet import nest


class State:
    def __init__(self, weights: Any) -> None:
        self.weights = weights


nest.register(State, lambda state: ((state.weights,), None), lambda _, children: State(*children))


@dataclass(frozen=True)
class Answer:
    loss: Any
    parts: Any = None


@dataclass
class Node:
    value: Any
    neighbours: list[Any] = field(default_factory=list)


@dataclass
class Sized:
    """Computes where it is made, as a class may that expects an array."""

    x: Any
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.x)
