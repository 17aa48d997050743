"""What a dataset may choose between in its options."""

from __future__ import annotations

import enum

__all__ = ["AutoShardPolicy", "ExternalStatePolicy"]


class AutoShardPolicy(enum.IntEnum):
    """How a strategy deals a dataset to workers, and cuts its batches (``tf.data.experimental.AutoShardPolicy``).

    Attributes
    ----------
    OFF
        Every worker reads everything.
    AUTO
        FILE where the dataset reads files, else DATA.
    FILE
        Every worker reads files of its own.
    DATA
        Every worker reads everything, and keeps its part of each global batch.
    HINT
        Every worker reads what ``dataset.shard(SHARD_HINT, SHARD_HINT)`` leaves to it.

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
    """What to do when an iterator is saved that calls functions (``tf.data.experimental.ExternalStatePolicy``).

    A function of `map` that draws random numbers, or reads a clock, goes on from wherever it is when the iterator is
    restored: its state is not part of what is saved. Without a policy, an iterator is not saved if the code of such a
    function is seen to read a variable or to draw from a generator of random numbers; other functions are trusted.

    Attributes
    ----------
    WARN
        Save, and warn.
    IGNORE
        Save.
    FAIL
        Raise a FailedPreconditionError.

    Examples
    --------
    >>> from ringlet.data import Dataset, Options
    >>> options = Options()
    >>> options.experimental_external_state_policy = ExternalStatePolicy.FAIL
    >>> iter(Dataset.range(4).map(abs).with_options(options)).get_state()
    Traceback (most recent call last):
    ringlet.errors.FailedPreconditionError: elements of this dataset are made by functions or iterables of its user, ...
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2
