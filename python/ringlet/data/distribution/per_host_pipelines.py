"""Input pipelines for the hosts of a TPU slice, all simulated by one process: one pipeline for each host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.distribution.distribute import distribute_dataset, distribute_datasets_from_function
from ringlet.data.distribution.distributed_dataset import DistributedDataset
from ringlet.data.distribution.distribution_plan import Uneven
from ringlet.data.distribution.element_distribution import NONE_LEFT, ElementDistribution, ElementDistributionStream
from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.input_context import InputContext
from ringlet.data.input_options import InputOptions
from ringlet.data.tensor_spec import PerReplicaSpec
from ringlet.nest import map_structure


@dataclass(frozen=True, eq=False)
class HostDistribution(ElementDistribution):
    """A distribution plan: a step takes the next elements of each host's dataset for the replicas of that host.

    `nodes` and `counts` hold the node and the number of replicas of each host.
    """

    counts: tuple[int, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "replicas_of_hosts": list(self.counts)}

    @property
    def element_spec(self) -> Nest:
        specs = [node.element_spec for node, count in zip(self.nodes, self.counts, strict=True) for _ in range(count)]
        return map_structure(PerReplicaSpec, *specs)

    def open(self, context: IterationContext) -> Stream:
        return _HostDistributionStream(self, [node.open(context) for node in self.nodes])


class _HostDistributionStream(ElementDistributionStream):
    """Stream of the steps of a `HostDistribution`; the replicas of a host are adjacent."""

    _plan: HostDistribution

    def _take(self) -> list[Nest]:
        pairs = zip(self._inputs, self._plan.counts, strict=True)
        return [next(stream, NONE_LEFT) for stream, count in pairs for _ in range(count)]

    def _nodes(self, count: int) -> Sequence[Node]:
        plan = self._plan
        return [node for node, replicas in zip(plan.nodes, plan.counts, strict=True) for _ in range(replicas)]


def distribute_to_hosts(
    dataset: Dataset | Iterable[Any],
    counts: Sequence[int],
    options: InputOptions | None = None,
    *,
    uneven: Uneven = None,
) -> DistributedDataset:
    """Shard a dataset across the hosts of this process, and split its global batches among all replicas.

    `counts` holds the number of replicas of each host. The replicas of a host are adjacent, and receive the same parts
    of a batch as the replicas of a worker would. With `uneven`, one pipeline serves all hosts.
    """
    total, hosts = sum(counts), len(counts)
    if hosts == 1 or uneven is not None:
        return distribute_dataset(dataset, total, options, uneven=uneven)
    if total % hosts:
        raise ValueError(
            "tf.distribute expects every worker to have the same number of replicas. However, encountered "
            f"`num_replicas_in_sync` ({total}) that cannot be divided by `num_workers` ({hosts}), the number of hosts. "
            "Place equal numbers of replicas on the hosts, or use distribute_datasets_from_function"
        )
    shares = [
        distribute_dataset(dataset, total // hosts, options, num_workers=hosts, worker_index=host)
        for host in range(hosts)
    ]
    return _joined(shares, counts)


def distribute_to_hosts_from_function(
    dataset_fn: Callable[[InputContext], Dataset | Iterable[Any]],
    counts: Sequence[int],
    options: InputOptions | None = None,
) -> DistributedDataset:
    """Create a dataset for each host with a function, and distribute its elements to the replicas of the host.

    The function takes an InputContext in which each host is a pipeline; `counts` is as for `distribute_to_hosts`.
    """
    total, hosts = sum(counts), len(counts)
    if hosts == 1:
        return distribute_datasets_from_function(dataset_fn, total, options)
    shares = [
        # At least two, so that the plan distributes elements even if the host has one replica.
        distribute_datasets_from_function(lambda _, made=made: made, max(count, 2), options)  # type: ignore[misc]
        for made, count in ((dataset_fn(InputContext(hosts, i, total)), count) for i, count in enumerate(counts))
    ]
    return _joined(shares, counts)


def _joined(shares: Sequence[DistributedDataset], counts: Sequence[int]) -> DistributedDataset:
    decision = shares[0].decision
    plans = [share.decision.plan for share in shares]
    nodes = tuple(plan.inputs[0] for plan in plans)
    first = plans[0]
    source = first.source if isinstance(first, ElementDistribution) else None
    place = InputPlacement(sum(counts))
    plan = HostDistribution(nodes, place, source, counts=tuple(counts))
    cut = f"{decision.cut.partition(';')[0]}; {len(counts)} hosts have an input pipeline each"
    return DistributedDataset._decided(replace(decision, plan=plan, place=place, cut=cut))
