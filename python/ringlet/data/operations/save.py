"""Dataset.save: datasets written to files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.spec_inference import common_spec
from ringlet.data.operations.common.user_function import UserFunction, check_callable, spread
from ringlet.data.state.save_checkpoints import SaveCheckpoints
from ringlet.data.state.saved_dataset import SavedDatasetWriter, can_continue, check_compression
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import map_structure


def save(
    self: Dataset,
    path: Any,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: dict[str, Any] | None = None,
) -> None:
    """Save all elements in a folder, for `Dataset.load`.

    Parameters
    ----------
    path : str or path
        The folder, created if necessary. A dataset that is already saved in the folder is replaced once all elements
        are written.
    compression : str, optional
        ``"GZIP"`` compresses elements; ``"SNAPPY"`` compresses them faster but less. Both use zlib. None, ``"NONE"``
        and ``"AUTO"`` do not compress.
    shard_func : callable, optional
        Takes an element, unpacked into arguments if it is a tuple. Returns the number of the shard of the element. A
        shard is a file. By default, there is one shard.
    checkpoint_args : dict, optional
        Arguments of ``tf.train.CheckpointManager``: `directory` and `max_to_keep`, and optionally `checkpoint_name`,
        `step_counter` (a variable that is increased by 1 for each element), `checkpoint_interval` (the minimum number
        of steps between checkpoints; by default, a checkpoint follows each element) and `last_checkpoint_step`. After
        an interruption, the same call continues from the newest checkpoint; after a finished save, it starts again.

    Raises
    ------
    TypeError
        If `shard_func` is not callable, or an element holds values that cannot be saved, such as structured arrays.
    InvalidArgumentError
        If `shard_func` does not return an integer, or the compression is unknown.
    FailedPreconditionError
        If another program is saving to this folder, or the checkpoint belongs to another dataset.
    ValueError
        If `checkpoint_args` include ``"checkpoint"``, which `save` creates.

    Notes
    -----
    The files are not in TensorFlow's format. They hold arrays and text with a checksum for each element, but no code.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(3).map(lambda x: x * x).save("squares")
    >>> [int(x) for x in Dataset.load("squares")]
    [0, 1, 4]
    """
    level = check_compression(compression)
    function = None if shard_func is None else ShardFunction(shard_func)
    if checkpoint_args and "checkpoint" in checkpoint_args:
        raise ValueError("Invalid `checkpoint_args`. They are not allowed to include 'checkpoint': save creates it.")
    checkpoints = SaveCheckpoints(**checkpoint_args) if checkpoint_args else None
    folder = os.fsdecode(path)
    spec = _known_spec(self)
    found = checkpoints.newest() if checkpoints else None
    if found is not None and not can_continue(folder, found["written"]):
        found = None
    with iter(self) as elements:
        if found is not None:
            elements.set_state(found["iterator"])
        writer = SavedDatasetWriter.begin(folder, spec, level, found and found["written"])
        if writer is None:
            raise FailedPreconditionError(
                f"another program is saving to {folder}. Wait until it finishes, or pass another folder."
            )
        try:
            for number, element in enumerate(elements, writer.count):
                writer.write(element, 0 if function is None else function.shard(number, element))
                if spec is None:
                    own = map_structure(TensorSpec.from_array, element)
                    writer.spec = own if writer.spec is None else common_spec([writer.spec, own])
                if checkpoints is not None and checkpoints.count_step():
                    checkpoints.write({"iterator": elements.get_state(), "written": writer.progress()})
            writer.finish()
        finally:
            writer.abandon(keeps_files=checkpoints is not None)


def _known_spec(dataset: Dataset) -> Nest:
    """Return the specs of elements; None if unknown, as for an iterable that can be read only once."""
    try:
        return dataset.element_spec
    except FailedPreconditionError:
        return None


class ShardFunction(UserFunction):
    """A user function that returns the shard number of an element."""

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable(function, "shard_func")
        super().__init__(function, "shard_func", _shard)

    def shard(self, number: int, element: Nest) -> int:
        shard: int = self(number, *spread(element))
        return shard


def _shard(function: Callable[..., Any], *arguments: Nest) -> int:
    answer = function(*arguments)
    number = np.asarray(answer)
    if number.dtype.kind not in "iu" or number.ndim:
        raise InvalidArgumentError(f"`shard_func` must return a scalar int64, the number of a shard, got {answer!r}")
    return int(number)
