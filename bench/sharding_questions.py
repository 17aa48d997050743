"""The timed operations on sharded arrays, with expected answers, and the same operations untiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from bench import harness
from bench.peers.sharding_inputs import AXES, NUMBERS, PADDING, SPECS, STRIDES, inputs_of
from bench.reference import WrongAnswerError
from ringlet import sharding
from ringlet.sharding import Mesh

__all__ = ["COMPUTE_BOUND", "MEMORY_BOUND", "Question", "questions", "title_of"]

Array = NDArray[Any]

COMPUTE_BOUND, MEMORY_BOUND = ("exp", "matmul", "conv"), ("add", "sum")


@dataclass(frozen=True)
class Question:
    """A timed operation: tiled, untiled, or tiled with separate memory for each device.

    Attributes
    ----------
    title : str
    call : callable
        Makes the timed call once.
    expected : callable
        Returns the expected array.
    is_untiled : bool
        NumPy on one thread.
    tolerance : float
        Greatest relative and absolute error of the answer.
    """

    title: str
    call: Callable[[], Any]
    expected: Callable[[], Array]
    is_untiled: bool
    tolerance: float = 0.0

    def check(self) -> None:
        """Compare the answer with the expected one.

        Raises
        ------
        WrongAnswerError
            If it differs.
        """
        given, expected = np.array(self.call()), self.expected()
        if given.shape != expected.shape or not np.allclose(given, expected, self.tolerance, self.tolerance):
            raise WrongAnswerError(f"{self.title} gave {given!r}, expected {expected!r}. No time is reported.")

    def measure(self, region_seconds: float) -> float:
        """Return the seconds of one call, over back-to-back calls that fill a region."""
        if not self.is_untiled:
            return harness.seconds_per_call(self.call, region_seconds)
        with threadpoolctl.threadpool_limits(1):
            return harness.seconds_per_call(self.call, region_seconds)


def title_of(name: str, size_bytes: int, variant: str) -> str:
    """Return the title of the times of a question.

    Examples
    --------
    >>> title_of("add", 1 << 14, "untiled")
    'add 16 KiB, untiled'
    """
    return f"{name} {harness.format_bytes(size_bytes)}, {variant}"


def _function_of(name: str) -> Callable[..., Any]:
    functions: dict[str, Callable[..., Any]] = {
        "add": np.add,
        "exp": np.exp,
        "matmul": np.matmul,
        "sum": lambda x: np.sum(x, axis=0),
        "conv": lambda x, kernel: sharding.conv_general(x, kernel, STRIDES, PADDING, dimension_numbers=NUMBERS),
    }
    return functions[name]


def questions(name: str, size_bytes: int) -> Iterator[Question]:
    """Yield the variants of one question.

    Parameters
    ----------
    name : str
        A key of `SPECS`.
    size_bytes : int
    """
    mesh, operands = Mesh(AXES), inputs_of(name, size_bytes)
    specs, result = SPECS[name]
    wanted = mesh.sharding(*result)
    tiled = [sharding.shard(array, mesh.sharding(*spec)) for array, spec in zip(operands, specs, strict=True)]
    if name == "reshard":
        yield Question(title_of(name, size_bytes, "tiled"), lambda: tiled[0].reshard(wanted), operands[0].copy, False)
        with sharding.mode("copy"):
            apart = sharding.shard(operands[0], mesh.sharding(*specs[0]))

        def moved() -> Any:
            with sharding.mode("copy"):
                return apart.reshard(wanted)

        yield Question(title_of(name, size_bytes, "tiled, copies"), moved, operands[0].copy, False)
        return
    function = _function_of(name)

    def untiled() -> Any:
        return function(*operands)

    def over_devices() -> Any:
        return function(*tiled).reshard(wanted)

    yield Question(title_of(name, size_bytes, "tiled"), over_devices, untiled, False)
    yield Question(title_of(name, size_bytes, "untiled"), untiled, untiled, True)
