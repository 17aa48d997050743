"""resume: the remaining steps of a training loop that continues after its process was terminated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ringlet.train.checkpoint_manager import CheckpointManager
from ringlet.train.preemption_handler import PreemptionCheckpointHandler
from ringlet.train.termination import TerminationConfig


def resume(
    manager: CheckpointManager,
    num_steps: int | None = None,
    *,
    save_every: int | None = None,
    termination_config: TerminationConfig | None = None,
) -> Iterator[int]:
    """Yield the numbers of the steps that remain after the newest checkpoint; save and exit on a termination notice.

    The newest checkpoint is restored before the first step. After SIGTERM to any worker, all workers finish the current
    step, save, and exit with status 42; started again, the program continues with the next step. All workers of a
    strategy run the same loop.

    Parameters
    ----------
    manager : CheckpointManager
        Saves the checkpoint, which holds everything that the loop changes: variables, and the iterators of datasets.
    num_steps : int, optional
        The number of steps over all runs of the program; unlimited by default.
    save_every : int, optional
        Also save each time this many steps are done, and after the last step, because a killed process cannot save.
    termination_config : TerminationConfig, optional
        The exit status, a grace period, and termination notices other than SIGTERM.

    Yields
    ------
    int
        The number of the next step, from 0 in the first run of the program.

    Raises
    ------
    ValueError
        If `save_every` is less than 1, or this is not the main thread and there is no `termination_watcher_fn`.
    InvalidArgumentError
        If the newest checkpoint contains none of this program's objects, so that it belongs to another program.

    Examples
    --------
    >>> import tempfile, ringlet
    >>> data = iter(ringlet.data.Dataset.range(100).shuffle(100, seed=1).repeat().batch(10))
    >>> total = ringlet.Variable(0)
    >>> checkpoint = ringlet.train.Checkpoint(data=data, total=total)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = ringlet.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    ...     for step in ringlet.train.resume(manager, 10, save_every=5):
    ...         _ = total.assign_add(next(data).sum())
    ...     print(total.numpy(), list(ringlet.train.resume(manager, 12)))
    4950 [10, 11]
    """
    if save_every is not None and save_every < 1:
        raise ValueError(f"save_every must be None or a number of steps of at least 1, got {save_every!r}")
    handler = PreemptionCheckpointHandler(None, manager, None, termination_config)
    first = handler.total_run_calls
    try:
        for step in itertools.count(first) if num_steps is None else range(first, num_steps):
            yield step
            handler.save_checkpoint_if_preempted()
            if save_every is not None and ((step + 1) % save_every == 0 or step + 1 == num_steps):
                manager.save(check_interval=False)
    finally:
        handler._notice.close()
