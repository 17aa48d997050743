"""Special values of a dataset's cardinality."""

from __future__ import annotations

from typing import Final

INFINITE_CARDINALITY: Final = -1
"""The dataset never ends (``tf.data.INFINITE_CARDINALITY``)."""

UNKNOWN_CARDINALITY: Final = -2
"""The number of elements is unknown until the dataset is read (``tf.data.UNKNOWN_CARDINALITY``)."""


def cardinality_text(cardinality: int) -> str:
    """Return a cardinality as text: a number, ``infinite`` or ``unknown``."""
    return {INFINITE_CARDINALITY: "infinite", UNKNOWN_CARDINALITY: "unknown"}.get(cardinality, str(cardinality))
