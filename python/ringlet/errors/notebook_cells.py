"""Names of notebook cells, for messages that contain source locations."""

from __future__ import annotations

import sys
from contextlib import suppress


def cell_or_file(file: str) -> str:
    """Return the name of the notebook cell with this file name, such as ``Cell In[3]``; otherwise the file name."""
    with suppress(AttributeError, KeyError, TypeError):  # IPython is not loaded, or the file is not a cell
        return " ".join(sys.modules["IPython"].get_ipython().compile.format_code_name(file))
    return file
