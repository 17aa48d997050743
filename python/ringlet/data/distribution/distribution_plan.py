"""Selection of the distribution plan of a dataset, by policy, batch size and worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ringlet.data.distribution.auto_shard import Sharding, auto_shard
from ringlet.data.distribution.batch_split import BatchSplit, check_rows
from ringlet.data.distribution.element_distribution import ElementDistribution
from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.distribution.legacy_rebatch import LegacyRebatch
from ringlet.data.distribution.replica_rows import batch_sizes_for_worker
from ringlet.data.distribution.weighted_remainder import (
    WeightedBatchSplit,
    WeightedElementDistribution,
    WeightedSingleReplica,
)
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.graph.spec_inference import known_spec
from ringlet.data.operations.prefetch import Prefetch
from ringlet.data.operations.rebatch import Rebatch
from ringlet.data.operations.with_options import with_options_applied
from ringlet.data.policies import AutoShardPolicy
from ringlet.data.tensor_spec import NoneTensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

Uneven = Literal["keep"] | None
"""Treatment of elements that are too few for a step: "keep" yields all of them, None follows TensorFlow's rules."""

# Nodes that may follow a Prefetch at the end of a dataset; another Prefetch is then unnecessary.
_CHEAP = frozenset(["LegacyRebatch", "Rebatch", "Shard", "WithOptions"])


class Plan(Protocol):
    """Protocol of distribution plans, which turn elements into steps; a plain node is the plan for one replica."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The datasets whose elements form the steps."""
        ...

    @property
    def cardinality(self) -> int:
        """The reported cardinality of the distributed dataset."""
        ...

    @property
    def element_spec(self) -> Nest:
        """The specs of a step."""
        ...

    def open(self, context: IterationContext) -> Stream:
        """Open a stream of steps."""
        ...


@dataclass(frozen=True)
class Decision:
    """A plan and the reasons for it, for `ringlet.data.explain`.

    `policy` is None for a dataset created by a function, which is not sharded. `cut` describes how batches are split.
    """

    plan: Plan
    place: InputPlacement
    policy: AutoShardPolicy | None
    reason: str
    cut: str

    @property
    def facts(self) -> dict[str, str]:
        """The policy with its reason, and `cut`, as text under the keys ``"policy"`` and ``"cut"``."""
        policy = "none" if self.policy is None else self.policy.name
        return {"policy": f"{policy} ({self.reason})", "cut": self.cut}


def decide(node: Node, place: InputPlacement, *, buffer_size: int = 1, uneven: Uneven = None) -> Decision:
    """Choose the plan for a dataset of global batches on one worker.

    `buffer_size` elements are prefetched for each replica, if a prefetch thread saves time.
    """
    if uneven not in (None, "keep"):
        raise InvalidArgumentError(f"uneven must be 'keep' or None, got {uneven!r}")
    node = with_options_applied(node)
    sharding = Sharding(place.num_workers, place.worker_index, place.total, fills_all=uneven is None)
    sharded = auto_shard(node, sharding)
    is_by_data = sharded.policy is AutoShardPolicy.DATA
    # Under DATA, the original dataset is split here; the graph of auto_shard() follows TensorFlow, which replaces a
    # final rebatch.
    share = node if is_by_data else sharded.node
    cuts_whole = is_by_data or (uneven is not None and place.num_workers == 1)
    if place.total == 1:
        plan, cut = _alone(share, buffer_size, uneven)
    elif cuts_whole:
        plan, cut = _cut_whole(share, place, buffer_size, uneven)
    else:
        plan, cut = _deal_share(node, share, place, buffer_size, uneven)
    return Decision(plan, place, sharded.policy, sharded.reason, cut)


def _alone(share: Node, buffer_size: int, uneven: Uneven) -> tuple[Plan, str]:
    share = _buffered(share, buffer_size)
    return WeightedSingleReplica(share) if uneven else share, "the only replica gets unchanged elements"


def _cut_whole(node: Node, place: InputPlacement, buffer_size: int, uneven: Uneven) -> tuple[Plan, str]:
    """Return a plan, and its description: every worker reads all global batches and keeps its replicas' rows."""
    total, workers = place.total, place.num_workers
    if uneven:
        cut = f"each global batch is cut into {total} shares that differ by at most one row"
        return WeightedBatchSplit(_buffered(node, buffer_size), place), cut
    cut = f"each global batch is cut into {total} chunks of ceil(rows / {total}) rows"
    if workers == 1:
        return BatchSplit(_buffered(node, buffer_size), total), cut
    check_rows(node, total)
    kept = tuple(range(place.worker_index, total, workers))
    chunks = _buffered(LegacyRebatch(node, total, kept), buffer_size * place.num_replicas)
    plan = ElementDistribution((chunks,), place, node, steps_are_batches=True)
    return plan, f"{cut}; this worker keeps the chunks {', '.join(map(str, kept))}"


def _deal_share(node: Node, share: Node, place: InputPlacement, buffer_size: int, uneven: Uneven) -> tuple[Plan, str]:
    """Return a plan, and its description: every worker reads its own share and rebatches it for its replicas."""
    if uneven and place.num_workers > 1 and place.sum_over_workers is None:
        raise InvalidArgumentError(
            "uneven='keep' requires sum_over_workers if workers read their own files or shards: the weights depend on "
            "the number of rows of all workers. Pass sum_over_workers, or set AutoShardPolicy.DATA."
        )
    size = batch_size_of(node)
    if size:
        sizes = batch_sizes_for_worker(size, place.num_workers, place.num_replicas, place.worker_index)
        parts: Node = Rebatch(share, sizes)
        cut = f"rows are rebatched to the sizes {', '.join(map(str, sizes))} in turn"
    else:
        parts = LegacyRebatch(share, place.total)
        cut = f"each batch (of unknown size) is cut into {place.total} chunks"
    parts = _buffered(parts, buffer_size * place.num_replicas)
    return (WeightedElementDistribution if uneven else ElementDistribution)((parts,), place, node), cut


def decide_dealing(node: Node, place: InputPlacement, *, buffer_size: int = 1) -> Decision:
    """Choose the plan for a dataset whose elements are per-replica batches."""
    node = with_options_applied(node)
    share = _buffered(node, buffer_size * place.num_replicas)
    plan: Plan = share if place.total == 1 else ElementDistribution((share,), place, node)
    return Decision(plan, place, None, "a function created the dataset", "whole elements go to the replicas in turn")


def decide_per_replica(nodes: Sequence[Node], *, buffer_size: int = 1) -> Decision:
    """Choose the plan for several datasets, one for each replica."""
    place = InputPlacement(len(nodes))
    shares = tuple(_buffered(with_options_applied(node), buffer_size) for node in nodes)
    plan: Plan = shares[0] if place.total == 1 else ElementDistribution(shares, place)
    cut = "each replica gets the elements of its own dataset"
    return Decision(plan, place, None, "a function created the datasets", cut)


def _buffered(node: Node, size: int) -> Node:
    """Append a prefetch of `size` elements, unless `size` is 0 or only nodes in `_CHEAP` follow an earlier prefetch."""
    last = node
    while type(last).__name__ in _CHEAP:
        last = last.inputs[0]
    return node if size < 1 or isinstance(last, Prefetch) else Prefetch(node, size)


# Operations that select, reorder, concatenate or zip whole elements, so that the batch size stays the same.
_KEEP_SIZE = frozenset(
    ["Cache", "Concatenate", "Filter", "Prefetch", "Repeat", "Shard", "Shuffle", "Skip", "Take", "WithOptions", "Zip"]
)
_BATCHES = frozenset(["Batch", "PaddedBatch"])


def batch_size_of(node: Node) -> int | None:
    """Return the size of a full batch of a dataset, or None if its graph does not determine it.

    It is the number of rows of all arrays if the specs determine it. Otherwise, it is the size of the last `batch` or
    `padded_batch`, without parallel calls, that is followed only by operations that select, reorder, concatenate or zip
    whole elements.
    """
    elements = known_spec(node)
    if elements is None:
        return None
    specs = [spec for spec in flatten(elements)[0] if not isinstance(spec, NoneTensorSpec)]
    for path, spec in zip(paths(elements), flatten(elements)[0], strict=True):
        if spec.shape == ():
            raise InvalidArgumentError(
                f"cannot split elements among replicas: element{path} is a scalar, which has no batch "
                "dimension. Call dataset.batch(global_batch_size) before distributing the dataset."
            )
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    if None not in sizes:
        return sizes.pop() if len(sizes) == 1 else None
    return _declared(node)


def _declared(node: Node) -> int | None:
    kind = type(node).__name__
    if kind in _BATCHES:
        # As in TensorFlow, the size of batches that are computed in parallel is not recognized.
        is_parallel = getattr(node, "num_parallel_calls", None) is not None
        return None if is_parallel else int(node.batch_size)  # type: ignore[attr-defined]
    if kind not in _KEEP_SIZE:
        return None
    sizes = {_declared(source) for source in node.inputs}
    return sizes.pop() if len(sizes) == 1 else None
