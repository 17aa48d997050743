"""TPUStrategy in a job with one worker for each host of the slice: a worker runs the replicas of its host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ringlet.cluster.cluster_queries import check_workers, id_in_cluster
from ringlet.cluster.environment import default_resolver, read_placement
from ringlet.cluster.task_validation import num_tasks
from ringlet.collectives import CommunicationOptions
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.calls.argument_checks import refuse_per_replica
from ringlet.strategy.multi_worker.multi_worker_strategy import MultiWorkerMirroredExtended
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool
from ringlet.strategy.tpu.tpu_extended import TPUExtended

if TYPE_CHECKING:
    from ringlet.data import InputContext


class TPUWorkersExtended(TPUExtended, MultiWorkerMirroredExtended):
    """Implementation of :class:`TPUStrategy` by one worker, for the replicas of its host.

    The constructor takes the arguments of :class:`TPUExtended`. Its devices are those of this host.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        TPUExtended.__init__(self, *args, **kwargs)
        hosts = list(self.input_devices.values())
        count = len(hosts[0])
        if any(len(devices) != count for devices in hosts) or sum(hosts, ()) != self._devices:
            raise ValueError(
                "each host of the slice is a worker of this job, but hosts do not have equal numbers of consecutive "
                f"replicas: their first devices are {', '.join(self._devices)}. Pass another device assignment, or "
                "start the program as one process, which runs all replicas"
            )
        resolver = self._cluster_resolver = default_resolver()
        spec, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        check_workers(spec, job, index, resolver)
        begin = count * id_in_cluster(spec, job, index)
        self.tpu_devices = self.tpu_devices[begin : begin + count]
        self._devices = tuple(self.tpu_devices[:, 0])
        self._thread_pool = ReplicaThreadPool(count)
        self._set_workers(spec, job, index, CommunicationOptions())

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        refuse_per_replica(self, options)
        return StrategyExtended._distribute_dataset(self, dataset, options, uneven)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        refuse_per_replica(self, options)
        return StrategyExtended._distribute_datasets_from_function(self, dataset_fn, options)


def is_worker(extended: TPUExtended) -> bool:
    """Return whether this process is one worker of a job with as many workers as the replicas have hosts."""
    hosts, place = len(extended.input_devices), read_placement()
    if place.config is None and place.size != hosts:
        return False
    spec = default_resolver().cluster_spec()
    return num_tasks(spec, "chief") + num_tasks(spec, "worker") == hosts
