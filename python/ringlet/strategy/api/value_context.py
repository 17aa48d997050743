"""What a function that makes a distributed value learns about the component that it makes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ValueContext"]


@dataclass(frozen=True)
class ValueContext:
    """Which component is wanted (``tf.distribute.experimental.ValueContext``).

    Parameters
    ----------
    replica_id_in_sync_group : int
        The replica, counted over all workers.
    num_replicas_in_sync : int
        Replicas of all workers.

    Examples
    --------
    >>> print(ValueContext(1, 4))
    tf.distribute.ValueContext(replica id 1,  total replicas in sync: 4)
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1

    def __str__(self) -> str:
        # TensorFlow's text, with its two spaces: programs compare it.
        return (
            f"tf.distribute.ValueContext(replica id {self.replica_id_in_sync_group},  "
            f"total replicas in sync: {self.num_replicas_in_sync})"
        )
