"""Errors and warnings about arguments, configurations and states of objects."""

from __future__ import annotations


class DuplicateDeviceError(ValueError, AssertionError):
    """Two replicas have the same device (TensorFlow raises a bare ``AssertionError``).

    Notes
    -----
    Give each replica a different device. Several spellings, such as ``CPU:0`` and ``/cpu:0``, name the same device.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.MirroredStrategy(["CPU:0", "/cpu:0"])
    Traceback (most recent call last):
    ringlet.errors.DuplicateDeviceError: ...
    """


class CoordinateError(ValueError, IndexError):
    """A core is outside the mesh of a TPU topology, or assigned twice (TensorFlow raises ``IndexError`` or nothing).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.tpu.Topology(mesh_shape=[2, 1, 1, 1], device_coordinates=[[[5, 0, 0, 0]]])
    Traceback (most recent call last):
    ringlet.errors.CoordinateError: device_coordinates[0, 0] is (5, 0, 0, 0), which is outside of the
    mesh [2 1 1 1]: index 5 is out of bounds for axis 0 with size 2. Coordinates are x, y, z and core, counted from 0.
    """


class InvalidArgumentError(ValueError):
    """An argument has a value that the operation cannot accept (``tf.errors.InvalidArgumentError``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.collectives.Group(0)
    Traceback (most recent call last):
    ringlet.errors.InvalidArgumentError: a group has 1 to 4096 ranks, not 0.
    """


class FailedPreconditionError(RuntimeError):
    """The state of an object does not allow the operation (``tf.errors.FailedPreconditionError``).

    Notes
    -----
    Usual causes: the object was closed or exhausted, is in use by another thread, or needs an earlier step, which the
    message names.

    Examples
    --------
    >>> import ringlet
    >>> numbers = iter([1, 2, 3])
    >>> dataset = ringlet.data.DistributedDataset(numbers, 1)
    >>> _ = list(dataset), list(dataset)
    Traceback (most recent call last):
    ringlet.errors.FailedPreconditionError: ...
    """


class OutOfRangeError(LookupError):
    """An iterator has no more elements (``tf.errors.OutOfRangeError``).

    Examples
    --------
    >>> import ringlet
    >>> iter(ringlet.data.Dataset.range(0)).get_next()
    Traceback (most recent call last):
    ringlet.errors.OutOfRangeError: end of the dataset. Create a new iterator to read the dataset again.
    """


class ClusterConfigError(ValueError):
    """A cluster configuration, such as the environment variable ``TF_CONFIG``, is invalid.

    The message gives the location of the error, the value found, the allowed values and a correction. Where TensorFlow
    raises ``TypeError`` or ``json.JSONDecodeError``, the error is also an instance of that class.

    Attributes
    ----------
    path : str
        JSON path of the error: ``"$"`` is the whole configuration, ``"$.cluster.worker[1]"`` the second worker.

    Notes
    -----
    ``ringlet doctor`` shows the variables of the environment that describe the cluster, and their effect.

    Examples
    --------
    >>> import ringlet
    >>> try:
    ...     ringlet.train.ClusterSpec({"worker": ["a:1", 2]})
    ... except ValueError as error:
    ...     error.path
    '$.worker[1]'
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class PartitionError(ValueError):
    """A tensor cannot be split into the requested tiles.

    Examples
    --------
    >>> import numpy as np
    >>> import ringlet
    >>> ringlet.sharding.tile_views(np.zeros((4, 4)), (3, 1))
    Traceback (most recent call last):
    ringlet.errors.PartitionError: cannot divide dimension 0 of shape (4, 4) into 3 equal tiles: 4 is not a multiple of
    3. Choose a divisor of 4, or pad the dimension to 6 first.
    """


class ShardingError(ValueError):
    """The sharding of an array, or of several arrays, does not fit the operation.

    Notes
    -----
    Usual causes: arrays on different meshes or numbers of devices, or a sharding for a different number of dimensions.
    Reshard one of the arrays.

    Examples
    --------
    >>> raise ShardingError("the arrays are on different device groups: 2 devices, and 4 devices")
    Traceback (most recent call last):
    ringlet.errors.ShardingError: the arrays are on different device groups: 2 devices, and 4 devices
    """


class GatherWarning(UserWarning):
    """An operation on a sharded array does not work tile by tile, so the whole array is gathered for it.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GatherWarning)  # in a block that may gather
    ...     warnings.warn("np.linalg.eigvals gathers 64 B", GatherWarning)
    """


class ReplicatedBatchWarning(UserWarning):
    """``strategy.run`` passed all rows of an array that looks like a global batch to each replica; issued once.

    Issued for an array whose length is a multiple of the number of replicas, or several arrays of the same length, with
    at least 4 rows for each replica, if the step has no distributed argument, and no replica reads its id or passes the
    array to ``all_reduce``.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", ReplicatedBatchWarning)  # each replica needs all rows
    """


class GatherError(RuntimeError):
    """An operation would gather a sharded array, inside :func:`ringlet.sharding.strict`.

    Notes
    -----
    Use an operation that works tile by tile, as the message suggests, or move the call out of the strict block.

    Examples
    --------
    >>> raise GatherError("np.linalg.eigvals gathers 64 B")
    Traceback (most recent call last):
    ringlet.errors.GatherError: np.linalg.eigvals gathers 64 B
    """


class ValuesDifferError(ValueError):
    """Values that must be equal on all replicas differ; raised by :func:`ringlet.checks.all_equal`.

    Raised on all replicas or, outside of a step, in all processes. The message names the differing leaves.

    Attributes
    ----------
    ranks : tuple of int
        The replicas that differ from the majority.
    path : str
        The first differing leaf, as an index expression.
    index : tuple of int or None
        The index of that leaf's first differing element; None if shapes or kinds differ.
    values : dict of int to object
        The value of each replica at `index`.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    >>> def step():
    ...     ringlet.checks.all_equal(2.5 if ringlet.get_replica_context().replica_id_in_sync_group == 1 else 3.0)
    >>> try:
    ...     strategy.run(step)
    ... except ValuesDifferError as error:
    ...     error.ranks, error.values[1]
    ((1,), np.float64(2.5))
    """

    def __init__(
        self,
        message: str,
        ranks: tuple[int, ...] = (),
        path: str = "",
        index: tuple[int, ...] | None = None,
        values: dict[int, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.ranks = ranks
        self.path = path
        self.index = index
        self.values = values or {}
