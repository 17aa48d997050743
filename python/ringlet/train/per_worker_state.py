"""What each worker has for itself, and a checkpoint must hold for all of them.

Numbers, text and objects with ``state_dict`` are the chief's. But the place in a dataset differs from worker to worker,
and so may variables: those of ON_READ do, and those whose components were let diverge. These are the *parts* of a
worker: objects with ``get_state``, and variables, by name. Those that are not the same on all workers travel to whoever
writes, and stand in the root node of the file behind what it has of its own::

    ["group", [...], {"workers": 3, "worker": 0, "parts": {"1": [[name, node], ...], "2": [...]}}]

A worker that restores takes its own part, and that of the one which wrote the file where none is noted for it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ringlet.train.checkpoint_writer import Tensor
from ringlet.train.encoding import Node, Path, encode, name_of, refuse_depth
from ringlet.train.tensor_dtypes import bytes_of, form_of_text
from ringlet.train.trackable_types import Kind, children_of, kind_of_object

__all__ = ["Part", "SavedParts", "noted", "pack", "parts_of", "unpack"]


@dataclasses.dataclass(frozen=True)
class Part:
    """One object that is another on each worker, encoded.

    Attributes
    ----------
    node : object
        Of the tree.
    tensors : list of Tensor
        Named for this worker.
    digest : str
        The same for equal objects, whatever the worker; of arrays it has the CRC32C that the file has as well.
    """

    node: Node
    tensors: list[Tensor]
    digest: str


def parts_of(value: Any, worker: int) -> dict[str, Part]:
    """Encode the parts of one worker.

    Parameters
    ----------
    value : Checkpoint
    worker : int

    Returns
    -------
    dict of str to Part
        By name.

    Raises
    ------
    ValueError, TypeError
        As :func:`encode` does.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> list(parts_of({"data": iter(Dataset.range(3)), "step": 3}, 1))
    ['data']
    """
    return {name: _encoded(name, each, f"/worker_{worker}/") for name, each in _own(value, ())}


def _own(value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    refuse_depth(path)
    kind = kind_of_object(value)
    if kind in (Kind.STATE, Kind.VARIABLE):
        yield name_of(path), value
    elif kind is not None:
        for key, child in children_of(value, kind):
            yield from _own(child, (*path, key))


def _encoded(name: str, value: Any, prefix: str) -> Part:
    node, tensors = encode(value, f"{prefix}{name}")
    sums = [[tensor.form.text, tensor.array.shape, tensor.crc32c()] for tensor in tensors]
    text = json.dumps([node, sums]).replace(prefix, "")
    return Part(node, tensors, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())


# --- from worker to worker --------------------------------------------------------------------------------------------


def pack(parts: dict[str, Part]) -> bytes:
    """Put parts into one piece of bytes.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> nodes, tensors = unpack(pack(parts_of({"data": iter(Dataset.range(3))}, 1)))
    >>> nodes[0][0]
    'data'
    """
    tensors = [tensor for part in parts.values() for tensor in part.tensors]
    head = {
        "nodes": [[name, part.node] for name, part in parts.items()],
        "tensors": [[each.name, each.form.text, list(each.array.shape)] for each in tensors],
    }
    text = json.dumps(head).encode("ascii")
    return b"".join([len(text).to_bytes(8, "little"), text, *(bytes_of(tensor.array) for tensor in tensors)])


def unpack(data: bytes) -> tuple[list[Any], list[Tensor]]:
    """Give the pairs of names and nodes, and the tensors, that :func:`pack` put together."""
    place = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:place])
    tensors = []
    for name, text, shape in head["tensors"]:
        form = form_of_text(text)
        size = math.prod(shape) * form.dtype.itemsize
        flat = np.frombuffer(data[place : place + size], np.uint8)
        array = flat.view(form.dtype.newbyteorder("<")).reshape(shape) if size else np.empty(shape, form.dtype)
        tensors.append(Tensor(name, array, form, True))
        place += size
    return head["nodes"], tensors


# --- in files ---------------------------------------------------------------------------------------------------------


def noted(tree: Node, worker: int, num_workers: int, parts: dict[int, list[Any]]) -> Node:
    """Give the root node of a file with the parts of other workers.

    Parameters
    ----------
    tree : object
        The root node of the worker that writes.
    worker, num_workers : int
        Which it is, and of how many.
    parts : dict of int to list
        For each other worker its pairs of names and nodes.

    Examples
    --------
    >>> noted(["group", []], 0, 2, {1: [["data", 3]]})
    ['group', [], {'workers': 2, 'worker': 0, 'parts': {'1': [['data', 3]]}}]
    """
    texts = {str(number): pairs for number, pairs in parts.items()}
    return [*tree[:2], {"workers": num_workers, "worker": worker, "parts": texts}]


class SavedParts:
    """The parts that a file has.

    Parameters
    ----------
    tree : object
        Its root node.

    Attributes
    ----------
    num_workers : int
        How many saved it.

    Examples
    --------
    >>> saved = SavedParts(["group", [], {"workers": 2, "worker": 0, "parts": {"1": [["data", 3]]}}])
    >>> saved.node_for(1, "data", 5), saved.node_for(0, "data", 5), saved.nodes("data", 5)
    (3, 5, [5, 3])
    """

    def __init__(self, tree: Node) -> None:
        told = tree[2] if isinstance(tree, list) and len(tree) > 2 and isinstance(tree[2], dict) else {}
        self.num_workers = int(told.get("workers", 1))
        self._parts = {int(number): dict(pairs) for number, pairs in told.get("parts", {}).items()}

    def node_for(self, worker: int, name: str, node: Node) -> Node:
        """Give what a worker restores; `node` is what the one that wrote has."""
        return self._parts.get(worker, {}).get(name, node)

    def nodes(self, name: str, node: Node) -> list[Node]:
        """Give what all workers had, in their order."""
        return [self.node_for(worker, name, node) for worker in range(self.num_workers)]
