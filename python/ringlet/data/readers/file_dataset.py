"""FileDataset: base class of datasets over files."""

from __future__ import annotations

from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.graph.node import Node


class FileDataset(Dataset):
    """Base class of datasets over files.

    Operations return a plain `Dataset`.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an object of this class for file names, or a plain dataset for a node."""
        if args and isinstance(args[0], Node):
            return Dataset(args[0])
        return super().__new__(cls)
