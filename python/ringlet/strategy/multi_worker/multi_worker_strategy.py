"""MultiWorkerMirroredStrategy: synchronous replicas in several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringlet.collectives import CommunicationImplementation, CommunicationOptions
from ringlet.strategy.api.strategy import Strategy

if TYPE_CHECKING:
    from ringlet.cluster import ClusterResolver


class MultiWorkerMirroredStrategy(Strategy):
    """Runs each step on the replicas of several processes, with mirrored variables.

    Corresponds to ``tf.distribute.MultiWorkerMirroredStrategy``. Each process runs the same program and is one worker
    of the cluster that the environment describes: ``ringlet run``, ``TF_CONFIG``, torchrun, mpirun or srun. The
    rendezvous of the workers takes place at the first call that needs all of them, such as the first variable, not when
    the strategy is created. Without a cluster, this process is the only worker.

    Parameters
    ----------
    cluster_resolver : ClusterResolver, optional
        Describes the workers and the task of this process; by default read from the environment.
    communication_options : CommunicationOptions, optional
        ``timeout_seconds`` limits the wait for other workers, in the rendezvous and in each call (0: no limit; by
        default 600, or ``RINGLET_TIMEOUT_SECONDS``); the other fields are the defaults of all calls.

    Raises
    ------
    ValueError
        If an argument has the wrong type, or the cluster is invalid; see
        :class:`~ringlet.errors.ClusterConfigError`.

    Notes
    -----
    A worker has one replica, or the number set by ``RINGLET_NUM_DEVICES`` or :func:`ringlet.set_logical_devices`; all
    workers have the same number. All workers make the same calls in the same order. If a worker is lost, or ends with
    an uncaught exception, all other workers raise an error that names it, and the strategy is unusable everywhere.

    Examples
    --------
    >>> import ringlet
    >>> spec = ringlet.train.ClusterSpec({"worker": ["localhost:1", "localhost:2"]})
    >>> resolver = ringlet.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=1)
    >>> strategy = MultiWorkerMirroredStrategy(resolver)
    >>> strategy.cluster_resolver.task_type, strategy.extended.worker_devices[0]
    ('worker', '/job:worker/replica:0/task:1/device:CPU:0')
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
    ) -> None:
        # Imported here so that importing the class does not load its implementation.
        from ringlet.strategy.multi_worker.multi_worker_extended import MultiWorkerMirroredExtended

        options = CommunicationOptions() if communication_options is None else communication_options
        super().__init__(MultiWorkerMirroredExtended(self, cluster_resolver, options))

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The resolver of the strategy's cluster."""
        resolver: ClusterResolver = self.extended._cluster_resolver  # type: ignore[attr-defined]  # set by __init__
        return resolver

    def __repr__(self) -> str:
        return f"MultiWorkerMirroredStrategy({self.extended!r})"


class _AcceptsBothSpellings(type):
    """Metaclass of the experimental class: every MultiWorkerMirroredStrategy is an instance of that class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, MultiWorkerMirroredStrategy)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy, metaclass=_AcceptsBothSpellings):
    """``tf.distribute.experimental.MultiWorkerMirroredStrategy``, which takes its arguments in a different order.

    Parameters
    ----------
    communication : CommunicationImplementation
        RING selects the ring algorithm.
    cluster_resolver : ClusterResolver, optional

    Examples
    --------
    >>> isinstance(MultiWorkerMirroredStrategy(), ExperimentalMultiWorkerMirroredStrategy)
    True
    """

    def __init__(
        self,
        communication: CommunicationImplementation = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))
