"""TPUStrategy in a job with one worker for each host of the slice: a worker runs the replicas of its host."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_queries import check_workers, id_in_cluster, worker_tasks
from ringlet.cluster.environment import default_resolver, read_placement
from ringlet.collectives import CommunicationOptions
from ringlet.strategy.multi_worker.multi_worker_extended import MultiWorkerMirroredExtended
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool
from ringlet.strategy.tpu.tpu_extended import TPUExtended


def has_workers(num_hosts: int) -> bool:
    """Return whether this process is a worker of a job with `num_hosts` workers."""
    place = read_placement()
    if place.config is None:
        return num_hosts == place.size
    workers = worker_tasks(place.config.cluster_spec)
    return num_hosts == len(workers) and place.config.task_type in {job for job, _, _ in workers}


class TPUWorkersExtended(TPUExtended, MultiWorkerMirroredExtended):
    """Implementation of :class:`TPUStrategy` by one worker, which has the devices of its host."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        TPUExtended.__init__(self, *args, **kwargs)
        counts = self._replicas_of_hosts()
        if len(set(counts)) > 1 or sum(self.input_devices.values(), ()) != self._devices:
            raise ValueError(
                "each host of the slice is a worker of this job, but hosts do not have equal numbers of consecutive "
                f"replicas: the devices are {', '.join(self._devices)}. Pass another device assignment, or run the "
                "program as one process"
            )
        resolver = self._cluster_resolver = default_resolver()
        task = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        check_workers(*task, resolver)
        begin = counts[0] * id_in_cluster(*task)
        self.tpu_devices = self.tpu_devices[begin : begin + counts[0]]
        self._devices = tuple(self.tpu_devices[:, 0])
        self._thread_pool = ReplicaThreadPool(counts[0])
        self._set_workers(*task, CommunicationOptions())
