"""PyTorch's modes of the calling thread, entered in the threads of the other replicas."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["torch_modes"]


def torch_modes() -> Callable[[], contextlib.ExitStack] | None:
    """Return a function that enters the calling thread's modes in another thread; None if they are the defaults.

    PyTorch keeps gradient, inference and autocast modes for each thread. Without the caller's modes, results would
    depend on the thread that runs a replica.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_autocast_dtype"):  # PyTorch is not imported, or only partly
        return None
    has_gradients, is_inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    is_autocast = torch.is_autocast_enabled("cpu")
    if has_gradients and not is_inference and not is_autocast:
        return None
    dtype, is_cached = torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()

    def enter() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.enter_context(torch.inference_mode(is_inference))
        stack.enter_context(torch.set_grad_enabled(has_gradients))
        stack.enter_context(torch.autocast("cpu", dtype=dtype, enabled=is_autocast, cache_enabled=is_cached))
        return stack

    return enter
