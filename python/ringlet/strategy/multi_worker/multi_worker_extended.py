"""Implementation of MultiWorkerMirroredStrategy: synchronous replicas in several processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ringlet import context, nest
from ringlet.cluster import ClusterResolver, TFConfigClusterResolver
from ringlet.cluster.cluster_queries import check_workers, id_in_cluster, is_chief, worker_count, worker_tasks
from ringlet.cluster.environment import default_resolver, warn_if_alone
from ringlet.cluster.worker_job_key import task_name
from ringlet.collectives import CommunicationImplementation, CommunicationOptions, ReduceOp
from ringlet.devices import requested_devices, short_list
from ringlet.devices.blas_threads import blas_limiter
from ringlet.strategy.api.cross_device_ops import CoreAllReduce, RingAllReduce, copies
from ringlet.strategy.api.mirrored_strategy import MirroredExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.reduce_semantics import check_count, is_mirrored, reduce_mirrored
from ringlet.strategy.calls.run_options import has_writable_results
from ringlet.strategy.multi_worker.ambient_worker_group import register_workers
from ringlet.strategy.multi_worker.cross_worker_ops import (
    first_value_of_chief,
    gather_over_workers,
    reduce_over_workers,
)
from ringlet.strategy.multi_worker.multi_worker_execution import SingleRun, WorkerRun
from ringlet.strategy.multi_worker.worker_group import WorkerGroup
from ringlet.strategy.multi_worker.worker_handshake import Cluster
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.strategy.replica.step_execution import ReplicaRun
from ringlet.values import DistributedValues, as_variables, split_arguments

_log = logging.getLogger(__name__)


class MultiWorkerMirroredExtended(MirroredExtended):
    """Implementation of `MultiWorkerMirroredStrategy`; with one worker, it behaves like its base class."""

    def __init__(self, container_strategy: Strategy, cluster_resolver: Any, options: Any) -> None:
        if not isinstance(options, CommunicationOptions):
            raise ValueError(
                "communication_options must be an instance of tf.distribute.experimental.CommunicationOptions, which "
                f"is ringlet.experimental.CommunicationOptions, got {options!r} of type {type(options).__name__}"
            )
        resolver = default_resolver() if cluster_resolver is None else cluster_resolver
        if not isinstance(resolver, ClusterResolver):
            raise ValueError(
                "cluster_resolver must be an instance of tf.distribute.cluster_resolver.ClusterResolver, which is "
                f"ringlet.cluster_resolver.ClusterResolver, got {resolver!r} of type {type(resolver).__name__}"
            )
        spec = resolver.cluster_spec()
        if not spec and cluster_resolver is not None and type(resolver) is TFConfigClusterResolver:
            warn_if_alone(
                "MultiWorkerMirroredStrategy(TFConfigClusterResolver())",
                "To join the other workers, omit the resolver: TFConfigClusterResolver reads TF_CONFIG only",
            )
        job: Any = "localhost"
        index: Any = 0
        if spec.as_dict():
            job, index = resolver.task_type, resolver.task_id
            check_workers(spec, job, index, resolver)
        count = len(requested_devices()) or 1
        devices = [f"{task_name(job, index)}/device:CPU:{device}" for device in range(count)]
        is_ring = options.implementation is CommunicationImplementation.RING
        super().__init__(container_strategy, devices, RingAllReduce() if is_ring else CoreAllReduce())
        self._cluster_resolver = resolver
        self._set_workers(spec, job, index, options)

    def _set_workers(self, spec: Any, job: Any, index: Any, options: CommunicationOptions) -> None:
        """Set the cluster and the task of this process, which runs a replica on each of its devices."""
        count = len(self._devices)
        self._options = options
        self._is_chief = not spec.as_dict() or is_chief(spec, job, index)
        self._workers = _worker_group(spec, job, index, count, options)
        if self._workers is not None:
            register_workers(self._workers)
            # Replicas of all workers share the cores of the machine; `_run_replicas` adds the replicas of this worker.
            self._num_sharing = self._num_replicas_in_sync - (count if count > 1 else 0)

    # --- properties ---------------------------------------------------------------------------------------------------

    @property
    def experimental_between_graph(self) -> bool:
        """True: every worker runs its own program."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """True on the chief, which writes checkpoints."""
        return self._is_chief

    @property
    def should_save_summary(self) -> bool:
        """True on the chief, which writes summaries."""
        return self._is_chief

    def __repr__(self) -> str:
        devices = short_list(self._devices)
        if self._workers is None:
            return devices
        return f"{devices}, worker {self._workers.worker_index} of {self._workers.num_workers}"

    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self._devices) * (1 if self._workers is None else self._workers.num_workers)

    @property
    def _num_local_replicas(self) -> int:
        return len(self._devices)

    @property
    def _first_replica(self) -> int:
        return 0 if self._workers is None else self._workers.first_rank

    # --- running ------------------------------------------------------------------------------------------------------

    @property
    def _run_type(self) -> type[ReplicaRun]:  # type: ignore[override]
        return ReplicaRun if self._workers is None else WorkerRun

    def _call_with_options(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Any
    ) -> Any:
        workers = self._workers
        if workers is None:
            return super()._call_with_options(fn, args, kwargs, options)
        limiter, owner = blas_limiter(), object()
        with workers.single_thread:
            try:
                limiter.enter(owner, self._num_sharing)
                if workers.num_local > 1:
                    return super()._call_with_options(fn, args, kwargs, options)
                rows, keywords = split_arguments(args, kwargs, 1)
                is_writable = options is not None and has_writable_results(options)
                return as_variables(self._run_single(workers, fn, rows[0], keywords[0], is_writable))
            except BaseException as error:
                workers.annotate(error)
                raise
            finally:
                limiter.leave(owner)

    def _run_single(
        self,
        workers: WorkerGroup,
        fn: Callable[..., Any],
        row: Sequence[Any],
        keywords: Mapping[str, Any],
        writable: bool,
    ) -> Any:
        run = SingleRun(self._container_strategy(), workers, self._ops, writable)
        try:
            return context.call_in(ReplicaContext._of_run(cast(ReplicaRun, run), 0), fn, *row, **keywords)
        finally:
            run.end()

    # --- variables and datasets ---------------------------------------------------------------------------------------

    def _first_value(self, request: Any) -> Any:
        if self._workers is None:
            return super()._first_value(request)
        return first_value_of_chief(self._workers, request)

    def _worker_arguments(self) -> dict[str, Any]:
        workers = self._workers
        if workers is None:
            return {}
        return {
            "num_workers": workers.num_workers,
            "worker_index": workers.worker_index,
            "sum_over_workers": workers.sum,
            "exchange": workers.exchange,
        }

    # --- combining ----------------------------------------------------------------------------------------------------

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        if self._workers is None:
            return super()._reduce(op, value)
        if isinstance(value, DistributedValues) and is_mirrored(value):
            check_count(value, len(self._devices))
            return reduce_mirrored(op, value, self._num_replicas_in_sync)
        return self._reduce_leaves(op, value, None)

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        if self._workers is None:
            return super()._reduce_to(op, value, destinations, options)
        if isinstance(value, DistributedValues) and is_mirrored(value):
            check_count(value, len(self._devices))
            return value if op is ReduceOp.MEAN else reduce_mirrored(op, value, self._num_replicas_in_sync)
        return nest.map_structure(self._copies, self._reduce_leaves(op, value, options))

    def _batch_reduce_to(
        self, op: ReduceOp, pairs: list[tuple[Any, Any]], options: CommunicationOptions | None
    ) -> list[Any]:
        if self._workers is None:
            return super()._batch_reduce_to(op, pairs, options)
        values = [value for value, _ in pairs]
        if any(isinstance(value, DistributedValues) and is_mirrored(value) for value in values):
            return [self._reduce_to(op, value, places, options) for value, places in pairs]
        return [nest.map_structure(self._copies, result) for result in self._reduce_leaves(op, values, options)]

    def _reduce_leaves(self, op: ReduceOp, value: Any, options: CommunicationOptions | None) -> Any:
        """Combine all leaves of a structure over the workers."""
        workers = self._workers
        assert workers is not None
        leaves, shape = nest.flatten(value)
        components = [self._components(leaf) for leaf in leaves]
        return nest.unflatten(shape, reduce_over_workers(workers, op, components, shape, workers.call_options(options)))

    def _components(self, leaf: Any) -> Sequence[Any]:
        """Return the values of this process's replicas; a value that is not distributed is repeated."""
        if not isinstance(leaf, DistributedValues):
            return (leaf,) * len(self._devices)
        check_count(leaf, len(self._devices))
        return leaf.values

    def _copies(self, result: Any) -> Any:
        return copies(result, len(self._devices))

    def _gather(self, value: Any, axis: int) -> Any:
        if self._workers is None:
            return super()._gather(value, axis)
        return gather_over_workers(self._workers, self._components(value), axis)


def _worker_group(spec: Any, job: Any, index: Any, count: int, options: CommunicationOptions) -> WorkerGroup | None:
    """Return the group of the workers of a cluster; None if there is only one worker."""
    if not spec.as_dict() or worker_count(spec, job) < 2:
        return None
    jobs = tuple(sorted((name, tuple(map(str, tasks))) for name, tasks in spec.as_dict().items()))
    cluster = Cluster(tuple(worker_tasks(spec)), id_in_cluster(spec, job, index), count, jobs)
    _log.info(
        "%s is worker %d of %d, with %s; the rendezvous takes place at the first call that needs all workers",
        cluster.name,
        cluster.worker_index,
        cluster.num_workers,
        "1 replica" if count == 1 else f"{count} replicas",
    )
    return WorkerGroup(cluster, is_chief(spec, job, index), options)
