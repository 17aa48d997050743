"""Names of the variables of a TPU machine, and how the text of each kind is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["Variables", "contradiction"]

# Where a value stands: the name that decides first. Those of one line mean the same.
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
    """Variables by name; an empty one is not set.

    Parameters
    ----------
    environ : mapping of str to str
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, *names: str) -> tuple[str, str | None]:
        """Give name and text of the first that is set; without one, the first name and None."""
        for name in names:
            if text := self._environ.get(name, "").strip():
                return name, text
        return names[0], None

    def same(self, names: tuple[str, str], read: Callable[[str], object] = str) -> tuple[str, str | None]:
        """Do as `get`, for two names of one thing, which must not differ, as `read` reads them."""
        name, text = self.get(*names)
        other, second = self.get(names[1])
        if text is not None and second is not None and read(text) != read(second):
            raise contradiction(name, other, f"the first is {text!r}, the second {second!r}")
        return name, text

    def number(self, name: str) -> int | None:
        """Give a whole number from 0 up."""
        text = self.get(name)[1]
        if text is None:
            return None
        if not NUMBER.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected a whole number from 0 up.")
        return int(text)

    def bounds(self, names: tuple[str, str]) -> tuple[str, tuple[int, ...] | None]:
        """Give name and numbers along x, y, z, and possibly a fourth one."""
        name, text = self.get(*names)
        if text is None:
            return name, None
        text = text.replace(" ", "")
        if not _BOUNDS.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected positive numbers along x, y and z, such as '2,2,1'.")
        return name, tuple(map(int, text.split(",")))

    def texts(self, name: str) -> tuple[str, ...]:
        """Give what stands between commas."""
        text = self.get(name)[1]
        return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()

    def present(self) -> list[str]:
        """Give the names of all that are set for TPUs."""
        return sorted(name for name in self._environ if name.startswith(("TPU_", "CLOUD_TPU_", "MEGASCALE_")))


def contradiction(first: str, second: str, how: str) -> ValueError:
    """Make the error for two variables that cannot both be true."""
    return ValueError(
        f"{first} and {second} contradict each other: {how}. Unset the one that another job has left behind."
    )
