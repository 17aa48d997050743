"""A module with a marked function."""

from __future__ import annotations

import ringlet


@ringlet.function
def double(x):
    return 2 * x
