"""Policies for dataset options."""

from __future__ import annotations

import enum


class AutoShardPolicy(enum.IntEnum):
    """Policy for sharding a dataset across workers (``tf.data.experimental.AutoShardPolicy``).

    Attributes
    ----------
    OFF
        Every worker reads the whole dataset.
    AUTO
        FILE if the dataset reads files, else DATA.
    FILE
        Every worker reads its own files.
    DATA
        Every worker reads the whole dataset and keeps its part of each global batch.
    HINT
        Every worker reads its shard of ``dataset.shard(SHARD_HINT, SHARD_HINT)``.

    Examples
    --------
    >>> from ringlet.data import Dataset, Options
    >>> options = Options()
    >>> options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    >>> Dataset.range(4).with_options(options).options().experimental_distribute
    DistributeOptions(auto_shard_policy=OFF)
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """Policy for saving an iterator that calls functions (``tf.data.experimental.ExternalStatePolicy``).

    A function of `map` that draws random numbers or reads a clock has state of its own, which is neither saved nor
    restored with the iterator. Without a policy, saving raises an error if the code of a function reads a variable or
    draws from a random number generator; other functions are assumed to be stateless.

    Attributes
    ----------
    WARN
        Save the iterator, with a warning.
    IGNORE
        Save the iterator without a warning.
    FAIL
        Raise a FailedPreconditionError.

    Examples
    --------
    >>> from ringlet.data import Dataset, Options
    >>> options = Options()
    >>> options.experimental_external_state_policy = ExternalStatePolicy.FAIL
    >>> iter(Dataset.range(4).map(abs).with_options(options)).get_state()
    Traceback (most recent call last):
    ringlet.errors.FailedPreconditionError: elements of this dataset are computed by user functions or iterables, ...
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2
