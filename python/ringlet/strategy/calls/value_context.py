"""ValueContext: the argument of functions that create a component of a distributed value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ValueContext:
    """The replica for which ``value_fn`` creates a component (``tf.distribute.experimental.ValueContext``).

    Parameters
    ----------
    replica_id_in_sync_group : int
        Index of the replica, counted over all workers.
    num_replicas_in_sync : int
        Number of replicas of all workers.

    Examples
    --------
    >>> print(ValueContext(1, 4))
    tf.distribute.ValueContext(replica id 1,  total replicas in sync: 4)
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1

    def __str__(self) -> str:
        # TensorFlow's text, including its two spaces: programs compare it.
        return (
            f"tf.distribute.ValueContext(replica id {self.replica_id_in_sync_group},  "
            f"total replicas in sync: {self.num_replicas_in_sync})"
        )
