"""Environment variables of a TPU machine: names and parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["Variables", "contradiction"]

# Names of each value in order of precedence. Names in one line are synonyms.
ACCELERATOR_TYPE = ("TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE")
TOPOLOGY = "TPU_TOPOLOGY"
CHIPS_PER_PROCESS = ("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS")
PROCESSES = ("TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS")
VISIBLE_CHIPS = ("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES")
HOSTNAMES = "TPU_WORKER_HOSTNAMES"
WORKER_ID = "TPU_WORKER_ID"
TASK_ID = "CLOUD_TPU_TASK_ID"
ADDRESSES = "TPU_PROCESS_ADDRESSES"
PORT = "TPU_PROCESS_PORT"
NAME = "TPU_NAME"
COORDINATOR = "MEGASCALE_COORDINATOR_ADDRESS"
NUM_SLICES = "MEGASCALE_NUM_SLICES"
SLICE_ID = "MEGASCALE_SLICE_ID"

_BOUNDS = re.compile(r"[1-9]\d{0,5}(,[1-9]\d{0,5}){2,3}", re.ASCII)
NUMBER = re.compile(r"\d{1,6}", re.ASCII)


class Variables:
    """Variables by name; an empty variable counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, *names: str) -> tuple[str, str | None]:
        """Return name and text of the first variable that is set; if none is set, the first name and None."""
        for name in names:
            if text := self._environ.get(name, "").strip():
                return name, text
        return names[0], None

    def same(self, names: tuple[str, str], read: Callable[[str], object] = str) -> tuple[str, str | None]:
        """Return the result of `get` for two synonyms, which must have equal values after `read`."""
        name, text = self.get(*names)
        other, second = self.get(names[1])
        if text is not None and second is not None and read(text) != read(second):
            raise contradiction(name, other, f"the first is {text!r}, the second {second!r}")
        return name, text

    def number(self, name: str) -> int | None:
        """Return a variable as a non-negative integer."""
        text = self.get(name)[1]
        if text is None:
            return None
        if not NUMBER.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected a non-negative integer.")
        return int(text)

    def bounds(self, names: tuple[str, str]) -> tuple[str, tuple[int, ...] | None]:
        """Return name and numbers along x, y, z, and optionally a fourth number."""
        name, text = self.get(*names)
        if text is None:
            return name, None
        text = text.replace(" ", "")
        if not _BOUNDS.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected positive numbers along x, y and z, such as '2,2,1'.")
        return name, tuple(map(int, text.split(",")))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the comma-separated items of a variable."""
        text = self.get(name)[1]
        return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()

    def present(self) -> list[str]:
        """Return the names of all TPU variables that are set."""
        return sorted(name for name in self._environ if name.startswith(("TPU_", "CLOUD_TPU_", "MEGASCALE_")))


def contradiction(first: str, second: str, how: str) -> ValueError:
    """Return the error for two variables that contradict each other."""
    return ValueError(
        f"{first} and {second} contradict each other: {how}. Unset the variable that another job has left behind."
    )
