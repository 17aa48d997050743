"""State that differs between workers, and how a checkpoint file stores it.

Numbers, text and objects with ``state_dict`` are saved from the chief. Dataset positions differ between workers, and
variables may differ (ON_READ variables, and variables whose components diverged). The *parts* of a worker are its
variables and its objects with ``get_state``, by name. Parts that differ between workers are sent to the writing worker
and stored in the root node of the file after the state of the writing worker::

    ["group", [...], {"workers": 3, "worker": 0, "parts": {"1": [[name, node], ...], "2": [...]}}]

A restoring worker takes its own part, or the writer's part if none is stored for it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ringlet.ipc.byte_framing import join_frames, split_frames
from ringlet.train.checkpoint_writer import Tensor
from ringlet.train.encoding import Node, Path, encode, name_of, refuse_depth
from ringlet.train.tensor_dtypes import bytes_of, form_of_text
from ringlet.train.trackable_types import Kind, children_of, kind_of_object


@dataclasses.dataclass(frozen=True)
class Part:
    """One object that may differ between workers, encoded; the names of its tensors contain the worker's index.

    Digests are equal for equal objects on any worker, and include the CRC32C that the file stores for each array.
    """

    node: Node
    tensors: list[Tensor]
    digest: str


def parts_of(value: Any, worker: int) -> dict[str, Part]:
    """Return the parts of one worker by name."""
    return {name: _encoded(name, each, f"/worker_{worker}/") for name, each in own_objects(value)}


def own_objects(value: Any, path: Path = ()) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each part in `value`."""
    refuse_depth(path)
    kind = kind_of_object(value)
    if kind in (Kind.STATE, Kind.VARIABLE):
        yield name_of(path), value
    elif kind is not None:
        for key, child in children_of(value, kind):
            yield from own_objects(child, (*path, key))


def _encoded(name: str, value: Any, prefix: str) -> Part:
    node, tensors = encode(value, f"{prefix}{name}")
    sums = [[tensor.form.text, tensor.array.shape, tensor.crc32c()] for tensor in tensors]
    text = json.dumps([node, sums]).replace(prefix, "")
    return Part(node, tensors, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())


# --- transport between workers ----------------------------------------------------------------------------------------


def pack(parts: dict[str, Part]) -> bytes:
    """Serialize the parts of a worker."""
    tensors = [tensor for part in parts.values() for tensor in part.tensors]
    head = {
        "nodes": [[name, part.node] for name, part in parts.items()],
        "tensors": [[each.name, each.form.text, list(each.array.shape)] for each in tensors],
    }
    text = json.dumps(head).encode("ascii")
    return join_frames([text, *(bytes_of(tensor.array) for tensor in tensors)])


def unpack(data: bytes) -> tuple[list[Any], list[Tensor]]:
    """Return the (name, node) pairs and the tensors that :func:`pack` serialized."""
    header, *contents = split_frames(data)
    head = json.loads(header)
    tensors = []
    for (name, text, shape), content in zip(head["tensors"], contents, strict=True):
        form = form_of_text(text)
        flat = np.frombuffer(content, np.uint8)
        array = flat.view(form.dtype.newbyteorder("<")).reshape(shape) if content else np.empty(shape, form.dtype)
        tensors.append(Tensor(name, array, form, True))
    return head["nodes"], tensors


# --- storage in files -------------------------------------------------------------------------------------------------


def with_parts(tree: Node, worker: int, num_workers: int, parts: dict[int, list[Any]]) -> Node:
    """Return the root node of the writing worker with the (name, node) pairs of other workers added."""
    texts = {str(number): pairs for number, pairs in parts.items()}
    return [*tree[:2], {"workers": num_workers, "worker": worker, "parts": texts}]


class SavedParts:
    """The parts stored in a file; `tree` is the file's root node."""

    def __init__(self, tree: Node) -> None:
        told = tree[2] if isinstance(tree, list) and len(tree) > 2 and isinstance(tree[2], dict) else {}
        self.num_workers = int(told.get("workers", 1))
        self._parts = {int(number): dict(pairs) for number, pairs in told.get("parts", {}).items()}

    def node_for(self, worker: int, name: str, node: Node) -> Node:
        """Return the node that a worker restores; `node` is the writing worker's node."""
        return self._parts.get(worker, {}).get(name, node)

    def nodes(self, name: str, node: Node) -> list[Node]:
        """Return the nodes of all workers, in order."""
        return [self.node_for(worker, name, node) for worker in range(self.num_workers)]
