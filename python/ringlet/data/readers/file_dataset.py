"""What the classes of datasets over files share."""

from __future__ import annotations

from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.graph.node import Node

__all__ = ["FileDataset"]


class FileDataset(Dataset):
    """A dataset of what files hold, and the base of the classes of such datasets.

    What an operation makes of one is a `Dataset` like any other.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Give an object of this class for names of files, and a plain dataset for the node of an operation."""
        if args and isinstance(args[0], Node):
            return Dataset(args[0])
        return super().__new__(cls)
