"""Classes for tests of structures: a registered node, and dataclasses that are frozen, have defaults or compute."""

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
    """Computes in its constructor, as a class that expects an array may do."""

    x: Any
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.x)
