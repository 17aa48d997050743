"""Auto-sharding: rewrites the graph of a dataset so that each worker reads its share.

FILE inserts a `Shard` before the node that reads files, so that a worker opens only its own files. DATA appends a
`Shard` to the graph, so that a worker computes all elements but keeps only its own. HINT fills in the numbers of
``shard(SHARD_HINT, SHARD_HINT)``. AUTO is FILE if possible, else DATA.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ringlet.data.distribution.legacy_rebatch import LegacyRebatch
from ringlet.data.graph.iteration_context import graph_nodes
from ringlet.data.graph.node import Node
from ringlet.data.graph.sources import TableSource
from ringlet.data.operations.from_generator import GeneratorSource
from ringlet.data.operations.rebatch import Rebatch
from ringlet.data.operations.shard import Shard
from ringlet.data.operations.shuffle import Shuffle
from ringlet.data.operations.with_options import options_of
from ringlet.data.policies import AutoShardPolicy
from ringlet.data.readers.file_reader import FileReader
from ringlet.errors import NotFoundError

# Operations that may follow a file reader under the policy FILE; other operations end the search, as in TensorFlow.
_SEEN_THROUGH = frozenset(
    {
        *("Batch", "Cache", "CsvFields", "Filter", "FlatMap", "Interleave", "LegacyRebatch", "Map", "PaddedBatch"),
        *("Prefetch", "Rebatch", "Repeat", "Shard", "Shuffle", "Skip", "Take", "Unbatch", "Window", "WithOptions"),
    }
)
_SEVERAL_INPUTS = frozenset(["Concatenate", "Zip"])
_OPENS_DATASETS = frozenset(["FlatMap", "Interleave"])
_AT_THE_END = frozenset(["Prefetch", "WithOptions"])


class Sharding(NamedTuple):
    """Parameters of sharding: the position of a worker among the workers that read the same dataset.

    With `fills_all`, a worker checks at its first element that all other workers have data.
    """

    num_workers: int
    worker_index: int
    num_replicas_in_sync: int
    fills_all: bool = True


class Sharded(NamedTuple):
    """A worker's graph, its policy (never AUTO), and the reason for the policy."""

    node: Node
    policy: AutoShardPolicy
    reason: str


def auto_shard(node: Node, sharding: Sharding) -> Sharded:
    """Return a worker's share of a dataset under the policy in its options.

    Under DATA, a `Rebatch` at the end becomes a `LegacyRebatch`, whose parts can be distributed to workers. Raises
    NotFoundError if there are several workers and the policy is FILE, but the dataset reads no files.
    """
    policy = options_of(node).experimental_distribute.auto_shard_policy
    if policy is AutoShardPolicy.OFF:
        return Sharded(node, policy, "set in the options")
    if policy is AutoShardPolicy.HINT:
        return Sharded(_by_hint(node, sharding), policy, "set in the options")
    if policy is AutoShardPolicy.DATA:
        return Sharded(_by_data(node, sharding), policy, "set in the options")
    if policy is AutoShardPolicy.FILE and sharding.num_workers == 1:
        return Sharded(node, policy, "set in the options; the only worker reads everything")
    try:
        by_file = _by_file(node, sharding)
    except _NoFiles as reason:
        if policy is AutoShardPolicy.FILE:
            raise _not_found(reason) from None
        return Sharded(_by_data(node, sharding), AutoShardPolicy.DATA, f"AUTO: {reason}")
    is_chosen = policy is AutoShardPolicy.AUTO
    has_readers = any(map(reads_files, graph_nodes(node)))
    found = "the dataset is read from files" if has_readers else "elements that are opened as datasets count as files"
    return Sharded(by_file, AutoShardPolicy.FILE, f"AUTO: {found}" if is_chosen else "set in the options")


class _NoFiles(Exception):
    """Raised if the policy FILE does not apply; the message is the reason."""


def _not_found(reason: _NoFiles) -> NotFoundError:
    return NotFoundError(
        f"Found an unshardable source dataset: the policy FILE distributes files to workers, but {reason}. Set "
        "options.experimental_distribute.auto_shard_policy to DATA or AUTO to distribute elements, or to OFF."
    )


def reads_files(node: Node) -> bool:
    """Return whether a node is a file reader, or a flat_map or interleave whose function returns datasets of files.

    User functions may be called on an example. A function that raises is treated as if it read no files; the error
    occurs again when the dataset is read.
    """
    if isinstance(node, FileReader):
        return True
    try:
        inner = getattr(node, "inner_example", None)
    except Exception:
        return False
    return inner is not None and _holds_reader(inner)


def _holds_reader(node: Node) -> bool:
    return reads_files(node) or any(map(_holds_reader, node.inputs))


def _lists_what_to_open(node: Node) -> bool:
    """Return whether TensorFlow's policy FILE shards the elements of a node as if they were file names.

    It does so for the elements of a generator, and of a flat_map or interleave directly over arrays.
    """
    if isinstance(node, GeneratorSource):
        return True
    source = node.inputs[0] if type(node).__name__ in _OPENS_DATASETS else None
    return isinstance(source, TableSource) and source.rows.is_memory


def _by_file(node: Node, sharding: Sharding, is_opened: bool = False) -> Node:
    """Insert a Shard before file readers; `is_opened` means that a later node opens a dataset for each element."""
    kind = type(node).__name__
    if kind in _SEVERAL_INPUTS:
        return node.with_inputs(*[_by_file(source, sharding) for source in node.inputs])
    if reads_files(node):
        names, *others = node.inputs
        return node.with_inputs(_shard_names(names, sharding), *others)
    if is_opened and _lists_what_to_open(node):
        return node if sharding.num_workers == 1 else _shard(node, sharding)
    if not node.inputs:
        raise _NoFiles(f"{kind} does not read files")
    if kind not in _SEEN_THROUGH:
        raise _NoFiles(f"it is unknown whether the input of {kind} reads files")
    source, *others = node.inputs
    return node.with_inputs(_by_file(source, sharding, is_opened or kind in _OPENS_DATASETS), *others)


def _shard_names(names: Node, sharding: Sharding) -> Node:
    """Shard the file names before they are shuffled, because every worker shuffles independently."""
    if sharding.num_workers == 1:
        return names
    names, shuffles = _without_shuffles(names)
    names = _shard(names, sharding)
    for shuffle in reversed(shuffles):
        names = shuffle.with_inputs(names)
    return names


def _without_shuffles(node: Node) -> tuple[Node, list[Node]]:
    shuffles: list[Node] = []
    inputs = []
    for source in node.inputs:
        bare, found = _without_shuffles(source)
        inputs.append(bare)
        shuffles += found
    if isinstance(node, Shuffle):
        return inputs[0], [node, *shuffles]
    is_same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
    return (node if is_same else node.with_inputs(*inputs)), shuffles


def _by_data(node: Node, sharding: Sharding) -> Node:
    if type(node).__name__ in _AT_THE_END:
        return node.with_inputs(_by_data(node.inputs[0], sharding))
    if isinstance(node, Rebatch):
        node = LegacyRebatch(node.input, sharding.num_replicas_in_sync)
    if isinstance(node, LegacyRebatch) and node.kept is None and node.num_replicas % sharding.num_workers == 0:
        # Yields the same parts as a Shard after the node, without computing the parts of other workers.
        kept = range(sharding.worker_index, node.num_replicas, sharding.num_workers)
        return node if sharding.num_workers == 1 else replace(node, kept=tuple(kept))
    return node if sharding.num_workers == 1 else _shard(node, sharding)


def _by_hint(node: Node, sharding: Sharding) -> Node:
    inputs = [_by_hint(source, sharding) for source in node.inputs]
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(*inputs)
    return _shard(node.input, sharding) if isinstance(node, Shard) and node.is_hint else node


def _shard(node: Node, sharding: Sharding) -> Shard:
    return Shard(node, sharding.num_workers, sharding.worker_index, sharding.fills_all)
