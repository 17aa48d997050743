"""Deferred import of the library safetensors."""

from __future__ import annotations

import importlib
from typing import Any


def safetensors() -> Any:
    """Import the library safetensors.

    A ModuleNotFoundError with the install command is raised if the library is missing, or too old to write without a
    copy of all data.
    """
    try:
        library = importlib.import_module("safetensors")
    except ModuleNotFoundError as error:
        raise _missing("is not installed") from error
    if not hasattr(library, "TensorSpec"):
        raise _missing(f"is installed as version {library.__version__}, but checkpoints need 0.8 or newer")
    return library


def _missing(what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"checkpoints are written and read by the library safetensors, which {what}: pip install 'ringlet[train]'",
        name="safetensors",
    )
