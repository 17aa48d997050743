"""The library that knows the file format, imported where it is needed."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["safetensors"]


def safetensors() -> Any:
    """Give the library safetensors.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed, or one that still needs a copy of everything that it writes; says how to install it.

    Examples
    --------
    >>> safetensors().__name__
    'safetensors'
    """
    try:
        library = importlib.import_module("safetensors")
    except ModuleNotFoundError as error:
        raise _missing("is not installed here") from error
    if not hasattr(library, "TensorSpec"):
        raise _missing(f"is installed here as version {library.__version__}, and checkpoints need 0.8 or newer")
    return library


def _missing(what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"checkpoints are written and read by the library safetensors, which {what}: pip install 'ringlet[train]'",
        name="safetensors",
    )
