"""CheckpointOptions: the process that writes, a barrier for all processes, and callbacks after a write."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers


@dataclasses.dataclass(eq=False)
class CheckpointOptions:
    """Options for saving when several processes hold the same values (``tf.train.CheckpointOptions``).

    Every process calls ``save`` with the same path; the chief writes. The workers of a strategy need no options: they
    choose the writer, wait for it, and raise its errors.

    Parameters
    ----------
    experimental_io_device : str, optional
        Ignored: every process reads and writes local files.
    experimental_enable_async_checkpoint, enable_async : bool
        Ignored: a file is on disk when the call returns. If either argument is true, both attributes are true.
    experimental_write_callbacks : list of callable, optional
        Called in order by every process; in the process that writes, after the file is written and before it is
        recorded as newest. Each takes the path or nothing.
    experimental_skip_slot_variables : bool
        Ignored: there are no slot variables.
    experimental_sharding_callback : None
        Must be None: a checkpoint is one file.
    is_chief : bool, optional
        Whether this process writes. If given, this process saves and restores independently of the other workers.
        By default the strategy decides; without a strategy, this process writes.
    barrier : callable, optional
        A function that takes a name, and returns once all processes have called it with that name, such as
        :meth:`ringlet.collectives.Member.barrier`. The chief calls it after writing; the other processes call it
        instead of writing. With a barrier, the workers of a strategy exchange neither state nor errors. Without one,
        processes outside a strategy do not wait.

    Raises
    ------
    AssertionError
        If a callback takes more parameters than the path.
    ValueError
        If `experimental_sharding_callback` is not None.

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
                    f"a write callback must take the path, or no argument, got {callback!r}: define it with one "
                    "parameter"
                )
        if self.experimental_sharding_callback is not None:
            raise ValueError(
                f"experimental_sharding_callback must be None, because a checkpoint is one file, got "
                f"{self.experimental_sharding_callback!r}: omit the argument"
            )


def writes(options: CheckpointOptions | None) -> bool:
    """Return whether this process writes: `is_chief` of the options, the strategy's choice, or True without either."""
    if options is not None and options.is_chief is not None:
        return options.is_chief
    workers = current_workers()
    if workers is not None:
        return workers.is_chief
    mode = context.current()
    return mode is None or bool(mode.strategy.extended.should_checkpoint)


def wait_for_chief(options: CheckpointOptions | None, path: str) -> None:
    """Call the barrier of the options, if they have one."""
    if options is not None and options.barrier is not None:
        options.barrier(f"checkpoint {path}")


def call_back(options: CheckpointOptions | None, path: str) -> None:
    """Call the write callbacks of the options."""
    callbacks = None if options is None else options.experimental_write_callbacks
    for callback in callbacks or ():
        callback(*[path][: len(inspect.signature(callback).parameters)])
