"""CheckpointOptions: which process writes, how the others wait, and what is called afterwards."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

__all__ = ["CheckpointOptions", "call_back", "wait_for_chief", "writes"]


@dataclasses.dataclass(eq=False)
class CheckpointOptions:
    """How checkpoints are written where several processes hold the same values (``tf.train.CheckpointOptions``).

    Every process calls ``save``, and they agree on the path; one of them, the chief, writes. The workers of a strategy
    need none of this: they find out who writes, wait for it, and hear of what goes wrong there.

    Parameters
    ----------
    experimental_io_device : str, optional
        Changes nothing: every process reads and writes its own files.
    experimental_enable_async_checkpoint, enable_async : bool
        Change nothing: a file is on the disk when the call returns. Each is true if either was given.
    experimental_write_callbacks : list of callable, optional
        Called in this order once a file is written, before it is noted as the newest; each takes its path, or nothing.
    experimental_skip_slot_variables : bool
        Changes nothing: there are no slot variables.
    experimental_sharding_callback : None
        A checkpoint is one file.
    is_chief : bool, optional
        Whether this process writes. Whoever says so saves and restores by itself. Unless given, the current strategy
        tells: ``extended.should_checkpoint``.
    barrier : callable, optional
        Takes a name, and returns when all processes have called it with that name: called when the chief has written,
        and by the others instead of writing. :meth:`ringlet.collectives.Member.barrier` is one. Processes without a
        strategy do not wait without it.

    Raises
    ------
    AssertionError
        If a callback takes more than the path.
    ValueError
        If a sharding callback is given.

    Examples
    --------
    >>> import os, tempfile, ringlet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = ringlet.train.Checkpoint(step=3)
    ...     path = checkpoint.save(f"{folder}/ckpt", ringlet.train.CheckpointOptions(is_chief=False))
    ...     os.path.basename(path), os.listdir(folder)
    ('ckpt-1', [])
    """

    experimental_io_device: Any = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: list[Callable[..., Any]] | None = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: None = None
    _: dataclasses.KW_ONLY
    is_chief: bool | None = None
    barrier: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        self.enable_async = self.experimental_enable_async_checkpoint or self.enable_async
        self.experimental_enable_async_checkpoint = self.enable_async
        for callback in self.experimental_write_callbacks or ():
            if len(inspect.signature(callback).parameters) > 1:
                raise AssertionError(
                    f"a write callback takes the path or nothing, got {callback!r}: give it one parameter"
                )
        if self.experimental_sharding_callback is not None:
            raise ValueError(
                f"experimental_sharding_callback is None, since a checkpoint is one file, got "
                f"{self.experimental_sharding_callback!r}: leave it out"
            )


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


def call_back(options: CheckpointOptions | None, path: str) -> None:
    """Call what is to be called when a file is written.

    Examples
    --------
    >>> call_back(CheckpointOptions(experimental_write_callbacks=[lambda path: print(path)]), "runs/ckpt-3")
    runs/ckpt-3
    """
    callbacks = None if options is None else options.experimental_write_callbacks
    for callback in callbacks or ():
        callback(*[path][: len(inspect.signature(callback).parameters)])
