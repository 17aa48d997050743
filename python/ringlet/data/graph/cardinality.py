"""How many elements a dataset has, when that can be said without reading it."""

from __future__ import annotations

from typing import Final

__all__ = ["INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY"]

INFINITE_CARDINALITY: Final = -1
"""The dataset never ends (``tf.data.INFINITE_CARDINALITY``)."""

UNKNOWN_CARDINALITY: Final = -2
"""Only reading the dataset can tell how many elements it has (``tf.data.UNKNOWN_CARDINALITY``)."""
