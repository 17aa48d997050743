"""Datasets for the hosts of one process, each with an input pipeline of its own, as a TPU slice has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.distribution.distribute import distribute_dataset, distribute_datasets_from_function
from ringlet.data.distribution.distributed_dataset import DistributedDataset
from ringlet.data.distribution.distribution_plan import Uneven
from ringlet.data.distribution.element_distribution import NONE_LEFT, DealElements, DealStream
from ringlet.data.distribution.input_placement import Place
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, Run, Stream
from ringlet.data.input_context import InputContext
from ringlet.data.input_options import InputOptions
from ringlet.data.tensor_spec import PerReplicaSpec
from ringlet.nest import map_structure

__all__ = ["DealHosts", "distribute_to_hosts", "distribute_to_hosts_from_function"]


@dataclass(frozen=True, eq=False)
class DealHosts(DealElements):
    """A plan of distribution: a step takes the next elements of each host's dataset for the replicas of that host.

    Parameters
    ----------
    nodes : tuple of Node
        One for each host.
    place : Place
        Of one worker, with the replicas of all hosts.
    source, may_pad
        As for DealElements.
    counts : tuple of int
        Replicas of each host.
    """

    counts: tuple[int, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """What the steps depend on."""
        return {**super().settings, "replicas_of_hosts": list(self.counts)}

    @property
    def element_spec(self) -> Nest:
        """A PerReplicaSpec for each array."""
        specs = [node.element_spec for node, count in zip(self.nodes, self.counts, strict=True) for _ in range(count)]
        return map_structure(PerReplicaSpec, *specs)

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of one nest of PerReplica for each step."""
        return _HostsStream(self, [node.open(run) for node in self.nodes])


class _HostsStream(DealStream):
    """As DealStream; the replicas of a host are next to each other."""

    __slots__ = ()
    _plan: DealHosts

    def _take(self) -> list[Nest]:
        pairs = zip(self._streams, self._plan.counts, strict=True)
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
    """Shard a dataset to the hosts of this process, and cut its global batches into parts for all replicas.

    Parameters
    ----------
    dataset : Dataset or iterable
    counts : sequence of int
        Replicas of each host.
    options : InputOptions, optional
    uneven : "keep" or None

    Returns
    -------
    DistributedDataset
        The replicas of a host are next to each other; its parts of a batch are those that it would get as a worker.

    Raises
    ------
    ValueError
        If the number of replicas is not a multiple of that of hosts.

    Examples
    --------
    >>> for step in distribute_to_hosts(Dataset.range(8).batch(8), [2, 2]):
    ...     print([part.tolist() for part in step.values])
    [[0, 1], [4, 5], [2, 3], [6, 7]]
    """
    total, hosts = sum(counts), len(counts)
    if hosts == 1 or uneven is not None:
        return distribute_dataset(dataset, total, options, uneven=uneven)
    if total % hosts:
        raise ValueError(
            "tf.distribute expects every worker to have the same number of replicas. However, encountered "
            f"`num_replicas_in_sync` ({total}) that cannot be divided by `num_workers` ({hosts}), the hosts of these "
            "replicas. Place as many on each host, or use distribute_datasets_from_function"
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
    """Deal the elements of the datasets that a function makes, one for each host, to the host's replicas.

    Parameters
    ----------
    dataset_fn : callable
        Takes an InputContext that counts the hosts as pipelines, gives a dataset of batches for one replica.
    counts : sequence of int
        Replicas of each host.
    options : InputOptions, optional

    Returns
    -------
    DistributedDataset

    Examples
    --------
    >>> def dataset_fn(context):
    ...     return Dataset.range(6).batch(1).shard(context.num_input_pipelines, context.input_pipeline_id)
    >>> for step in distribute_to_hosts_from_function(dataset_fn, [2, 1]):
    ...     print([part.tolist() for part in step.values])
    [[0], [2], [1]]
    [[4], [], [3]]
    [[], [], [5]]
    """
    total, hosts = sum(counts), len(counts)
    if hosts == 1:
        return distribute_datasets_from_function(dataset_fn, total, options)
    shares = [
        # Two at least: a plan that deals, also where the host has one replica.
        distribute_datasets_from_function(lambda _, made=made: made, max(count, 2), options)  # type: ignore[misc]
        for made, count in ((dataset_fn(InputContext(hosts, i, total)), count) for i, count in enumerate(counts))
    ]
    return _joined(shares, counts)


def _joined(shares: Sequence[DistributedDataset], counts: Sequence[int]) -> DistributedDataset:
    """One dataset of what each host deals to its replicas."""
    decision = shares[0].decision
    plans = [share.decision.plan for share in shares]
    nodes = tuple(plan.inputs[0] for plan in plans)
    first = plans[0]
    source = first.source if isinstance(first, DealElements) else None
    place = Place(sum(counts))
    plan = DealHosts(nodes, place, source, counts=tuple(counts))
    joined = DistributedDataset.__new__(DistributedDataset)
    cut = f"{decision.cut.partition(';')[0]}; {len(counts)} hosts have an input pipeline each"
    joined._decision = replace(decision, plan=plan, place=place, cut=cut)
    return joined
