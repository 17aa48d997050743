"""How a strategy combines values: the argument ``cross_device_ops``."""

from __future__ import annotations

from ringlet.collectives.op import Algorithm

__all__ = ["CrossDeviceOps", "DirectAllReduce", "RingAllReduce"]


class CrossDeviceOps:
    """Base of the ways in which a strategy combines the values of its replicas.

    Attributes
    ----------
    algorithm : Algorithm
        What the strategy's collectives run.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.CrossDeviceOps().algorithm.name
    'AUTO'
    """

    algorithm = Algorithm.AUTO

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DirectAllReduce(CrossDeviceOps):
    """Reads each chunk from every replica and writes it once, in the balanced tree order.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.DirectAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.DIRECT


class RingAllReduce(CrossDeviceOps):
    """The textbook ring: reduce-scatter, then all-gather, in the order of the ring.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ringlet.RingAllReduce()).num_replicas_in_sync
    2
    """

    algorithm = Algorithm.RING
