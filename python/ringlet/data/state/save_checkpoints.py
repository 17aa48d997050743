"""Checkpoints of an unfinished `Dataset.save`: numbered files in one folder; only the newest files are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ringlet.data.graph.node import State
from ringlet.data.state.cache_file import SUFFIX, CacheReader, CacheWriter
from ringlet.errors import DataLossError, FailedPreconditionError


class SaveCheckpoints:
    """The checkpoints of one `Dataset.save`; the arguments are its `checkpoint_args`."""

    def __init__(
        self,
        directory: Any,
        max_to_keep: int | None,
        *,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None. Pass a variable that counts "
                "steps."
            )
        self._prefix = f"{os.fsdecode(directory)}/{checkpoint_name}-"
        self._max_to_keep = max_to_keep
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._last_step = last_checkpoint_step

    def _numbers(self) -> list[int]:
        name = Path(self._prefix).name
        texts = [path.name[len(name) : -len(SUFFIX)] for path in Path(self._prefix).parent.glob(f"{name}*{SUFFIX}")]
        return sorted(int(text) for text in texts if text.isdecimal())

    def newest(self) -> State | None:
        """Return the newest state that is not damaged, or None."""
        for number in reversed(self._numbers()):
            try:
                (state,) = CacheReader(f"{self._prefix}{number}", kind="checkpoint")
            except (DataLossError, OSError):
                continue
            found: State = state
            return found
        return None

    def count_step(self) -> bool:
        """Count an element, and return whether a checkpoint is due."""
        if self._step_counter is not None:
            self._step_counter.assign_add(1)
        if self._interval is None:
            return True
        step = int(self._step_counter)
        if self._last_step is not None and step < self._last_step + self._interval:
            return False
        self._last_step = step
        return True

    def write(self, state: State) -> None:
        """Write the next checkpoint, and delete the oldest checkpoints beyond `max_to_keep`."""
        numbers = self._numbers()
        numbers.append(numbers[-1] + 1 if numbers else 1)
        Path(self._prefix).parent.mkdir(parents=True, exist_ok=True)
        writer = CacheWriter.begin(f"{self._prefix}{numbers[-1]}")
        if writer is None:
            raise FailedPreconditionError(
                f"{self._prefix}* is being written by another Dataset.save. Wait for it, or pass another `directory`."
            )
        writer.write(state)
        writer.finish()
        for number in numbers[: -self._max_to_keep] if self._max_to_keep else ():
            Path(f"{self._prefix}{number}{SUFFIX}").unlink(missing_ok=True)
