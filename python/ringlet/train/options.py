"""CheckpointOptions: who writes, and how the others wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ringlet import context
from ringlet.strategy.current_workers import current_workers

__all__ = ["CheckpointOptions", "wait_for_chief", "writes"]


@dataclasses.dataclass(frozen=True)
class CheckpointOptions:
    """How checkpoints are written where several processes hold the same values (``tf.train.CheckpointOptions``).

    Every process calls ``save``, and they agree on the path; one of them, the chief, writes. The workers of a strategy
    need none of this: they find out who writes, wait for it, and hear of what goes wrong there.

    Parameters
    ----------
    is_chief : bool, optional
        Whether this process writes. Whoever says so saves and restores by itself. Unless given, the current strategy
        tells: ``extended.should_checkpoint``.
    barrier : callable, optional
        Takes a name, and returns when all processes have called it with that name: called when the chief has written,
        and by the others instead of writing. :meth:`ringlet.collectives.Member.barrier` is one. Processes without a
        strategy do not wait without it.

    Examples
    --------
    >>> import os, tempfile, ringlet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = ringlet.train.Checkpoint(step=3)
    ...     path = checkpoint.save(f"{folder}/ckpt", ringlet.train.CheckpointOptions(is_chief=False))
    ...     os.path.basename(path), os.listdir(folder)
    ('ckpt-1', [])
    """

    is_chief: bool | None = None
    barrier: Callable[[str], Any] | None = None


def writes(options: CheckpointOptions | None) -> bool:
    """Whether this process is the one that writes.

    Examples
    --------
    >>> writes(None), writes(CheckpointOptions(is_chief=False))
    (True, False)
    """
    if options is not None and options.is_chief is not None:
        return options.is_chief
    workers = current_workers()
    if workers is not None:
        return workers.is_chief
    mode = context.current()
    return mode is None or bool(mode.strategy.extended.should_checkpoint)


def wait_for_chief(options: CheckpointOptions | None, path: str) -> None:
    """Wait until all processes are here, if they said how.

    Examples
    --------
    >>> wait_for_chief(CheckpointOptions(barrier=print), "runs/ckpt-3")
    checkpoint runs/ckpt-3
    """
    if options is not None and options.barrier is not None:
        options.barrier(f"checkpoint {path}")
