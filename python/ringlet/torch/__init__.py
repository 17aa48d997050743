"""The ``torch.distributed`` backend "ringlet" for tensors in CPU memory, on one host or in an MPI job.

Importing this module registers the backend; ``torch.distributed.init_process_group("ringlet")`` then uses it.
"""

from __future__ import annotations

import os
import platform

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError(
        "ringlet.torch requires PyTorch, which is not installed: pip install torch, or pip install 'ringlet[torch]'"
    ) from error

_OLDEST = (2, 6)

if platform.system() != "Linux":
    raise ImportError(
        f"ringlet.torch supports Linux only, but this system is {platform.system()}: use the gloo backend."
    )
if tuple(map(int, torch.__version__.split(".")[:2])) < _OLDEST:
    raise ImportError(
        f"ringlet.torch requires torch {'.'.join(map(str, _OLDEST))} or later, but torch {torch.__version__} is "
        "installed: pip install --upgrade torch"
    )
if not torch.distributed.is_available():
    raise ImportError(
        "ringlet.torch requires torch.distributed, which this build does not include: install another build of torch."
    )

from ringlet.observe.stacks import skip_files  # noqa: E402 - requires the checks above
from ringlet.torch.backend import RingletProcessGroup  # noqa: E402
from ringlet.torch.store_rendezvous import set_torch_variables  # noqa: E402

__all__ = ["RingletProcessGroup"]

set_torch_variables(os.environ)
skip_files(f"{torch.__path__[0]}{os.sep}")
torch.distributed.Backend.register_backend("ringlet", RingletProcessGroup.create, extended_api=True, devices=["cpu"])
