"""InputContext: the position of an input pipeline, for functions that create datasets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputContext:
    """The position of one input pipeline among all input pipelines (``tf.distribute.InputContext``).

    Parameters
    ----------
    num_input_pipelines : int, default 1
        Number of pipelines, usually one for each worker; with PER_REPLICA, one for each replica.
    input_pipeline_id : int, default 0
        Index of this pipeline.
    num_replicas_in_sync : int, default 1
        Number of replicas over all workers.

    Examples
    --------
    >>> context = InputContext(num_replicas_in_sync=4)
    >>> print(context, context.get_per_replica_batch_size(64))
    tf.distribute.InputContext(input pipeline id 0, total: 1) 16
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the batch size of each replica for a global batch size.

        Raises
        ------
        ValueError
            If `global_batch_size` is not a multiple of the number of replicas.

        Examples
        --------
        >>> InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(10)
        5
        """
        size, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            nearest = (size * self.num_replicas_in_sync, (size + 1) * self.num_replicas_in_sync)
            raise ValueError(
                f"global_batch_size {global_batch_size} is not divisible by num_replicas_in_sync "
                f"{self.num_replicas_in_sync}. Use {' or '.join(str(multiple) for multiple in nearest if multiple)}."
            )
        return size

    def __str__(self) -> str:
        # TensorFlow's text, including the module name: programs log and compare it.
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"
        )
