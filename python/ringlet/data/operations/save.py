"""Dataset.save: datasets written to files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.spec_inference import common_spec
from ringlet.data.operations.common.user_function import UserFunction, check_callable, spread
from ringlet.data.state.save_checkpoints import SaveCheckpoints
from ringlet.data.state.saved_dataset import SavedDatasetWriter, can_continue, check_compression
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import map_structure

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["ShardFunction", "save"]


def save(
    self: Dataset,
    path: Any,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: dict[str, Any] | None = None,
) -> None:
    """Write all elements to a folder, for `Dataset.load`.

    Parameters
    ----------
    path : str or path
        The folder, created if necessary. A dataset saved there before is replaced once all
        elements are written.
    compression : str, optional
        ``"GZIP"`` compresses elements, ``"SNAPPY"`` faster and less, both with zlib. None and ``"NONE"`` do not.
    shard_func : callable, optional
        Takes an element, unpacked into arguments if it is a tuple. Returns the number of the shard, which is a
        file, of the element. By default, there is one shard.
    checkpoint_args : dict, optional
        Arguments of ``tf.train.CheckpointManager``: `directory` and `max_to_keep`, and optionally `checkpoint_name`,
        `step_counter` (a variable, to which 1 is added for each element), `checkpoint_interval` (the least number of
        such steps between checkpoints; by default, there is one after each element) and `last_checkpoint_step`.
        The same call continues an interrupted save after the newest checkpoint. A finished save starts again.

    Raises
    ------
    TypeError
        If `shard_func` is not callable, or an element holds values other than numbers and text.
    InvalidArgumentError
        If `shard_func` does not return an integer, or the compression is unknown.
    FailedPreconditionError
        If another program is saving to this folder, or the checkpoint is that of another dataset.
    ValueError
        If `checkpoint_args` include ``"checkpoint"``, which `save` creates.

    Notes
    -----
    The files are not in TensorFlow's format, and hold no code: arrays and text, with a checksum for each element.

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
            raise FailedPreconditionError(f"another program is saving to {folder}: wait for it, or name another folder")
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
    """Return the spec of elements; None if unknown, as for an iterable that can be read only once."""
    try:
        return dataset.element_spec
    except FailedPreconditionError:
        return None


class ShardFunction(UserFunction):
    """A user function that returns the shard of an element."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable(function, "shard_func")
        super().__init__(function, "shard_func", _shard)

    def shard(self, number: int, element: Nest) -> int:
        """Return the shard of the element with this number."""
        shard: int = self(number, *spread(element))
        return shard


def _shard(function: Callable[..., Any], *arguments: Nest) -> int:
    answer = function(*arguments)
    number = np.asarray(answer)
    if number.dtype.kind not in "iu" or number.ndim:
        raise InvalidArgumentError(f"`shard_func` must return a scalar int64, the number of a shard; got {answer!r}")
    return int(number)
