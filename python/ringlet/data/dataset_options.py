"""Options of a dataset: execution and distribution settings for `Dataset.with_options`."""

from __future__ import annotations

import enum
from typing import Any, ClassVar

from ringlet.data.option_group import OptionGroup, Settings
from ringlet.data.policies import AutoShardPolicy, ExternalStatePolicy


class DistributeOptions(OptionGroup):
    """Settings for how strategies distribute a dataset (``tf.data.experimental.DistributeOptions``).

    Attributes
    ----------
    auto_shard_policy : AutoShardPolicy
        AUTO by default.
    num_devices : int or None
        Kept for compatibility with TensorFlow; unused.

    Examples
    --------
    >>> options = DistributeOptions()
    >>> options.auto_shard_policy = AutoShardPolicy.DATA
    >>> options
    DistributeOptions(auto_shard_policy=DATA)
    >>> options.auto_shard_polcy = AutoShardPolicy.DATA
    Traceback (most recent call last):
    AttributeError: Cannot set the property auto_shard_polcy on DistributeOptions: it has auto_shard_policy, ...
    """

    __slots__ = ()

    _SETTINGS: ClassVar[Settings] = {
        "auto_shard_policy": (AutoShardPolicy, AutoShardPolicy.AUTO),
        "num_devices": (int, None),
    }


class ThreadingOptions(OptionGroup):
    """Settings for the threads that compute a dataset's elements (``tf.data.ThreadingOptions``).

    Attributes
    ----------
    max_intra_op_parallelism : int or None
        Kept for compatibility with TensorFlow; unused: each operation uses one thread.
    private_threadpool_size : int or None
        Number of threads for ``num_parallel_calls=AUTOTUNE``; with 0 or None, the library chooses.

    Examples
    --------
    >>> options = ThreadingOptions()
    >>> options.private_threadpool_size = 2
    >>> options
    ThreadingOptions(private_threadpool_size=2)
    """

    __slots__ = ()

    _SETTINGS: ClassVar[Settings] = {"max_intra_op_parallelism": (int, None), "private_threadpool_size": (int, None)}


class AutotuneOptions(OptionGroup):
    """Settings for TensorFlow's tuner (``tf.data.experimental.AutotuneOptions``); they have no effect."""

    __slots__ = ()

    _SETTINGS: ClassVar[Settings] = {
        "enabled": (bool, None),
        "cpu_budget": (int, None),
        "ram_budget": (int, None),
        "autotune_algorithm": (enum.Enum, None),
        "initial_parallelism": (int, None),
        "min_parallelism": (int, None),
    }


class OptimizationOptions(OptionGroup):
    """Settings for TensorFlow's graph rewrites (``tf.data.experimental.OptimizationOptions``); they have no effect.

    Examples
    --------
    >>> options = OptimizationOptions()
    >>> options.map_fusion = True
    >>> options
    OptimizationOptions(map_fusion=True)
    """

    __slots__ = ()

    _SETTINGS: ClassVar[Settings] = {
        "apply_default_optimizations": (bool, None),
        "filter_fusion": (bool, None),
        "filter_parallelization": (bool, None),
        "inject_prefetch": (bool, None),
        "seq_interleave_prefetch": (bool, None),
        "map_and_batch_fusion": (bool, None),
        "map_and_filter_fusion": (bool, None),
        "map_fusion": (bool, None),
        "map_parallelization": (bool, None),
        "noop_elimination": (bool, None),
        "parallel_batch": (bool, None),
        "shuffle_and_repeat_fusion": (bool, None),
    }


class Options(OptionGroup):
    """Settings of a dataset, for `Dataset.with_options` (``tf.data.Options``).

    Only `deterministic`, `threading`, `experimental_distribute` and `experimental_external_state_policy` have an
    effect; TensorFlow's other settings are accepted and ignored.

    Attributes
    ----------
    deterministic : bool or None
        Whether operations with ``deterministic=None`` keep the order of elements; None means True.
    threading : ThreadingOptions
    experimental_distribute : DistributeOptions
    experimental_external_state_policy : ExternalStatePolicy or None
        Policy for saving an iterator whose elements are computed by functions; None means FAIL if the code of
        these functions reads variables or draws random numbers, else IGNORE.
    autotune, dataset_name, experimental_optimization, experimental_slack, framework_type : object
        Ignored, as are `experimental_symbolic_checkpoint` and `experimental_warm_start`.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> options = Options()
    >>> options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    >>> Dataset.range(4).with_options(options).batch(2).options().experimental_distribute.auto_shard_policy.name
    'OFF'
    """

    __slots__ = ()

    _SETTINGS: ClassVar[Settings] = {
        "autotune": (AutotuneOptions, AutotuneOptions),
        "deterministic": (bool, None),
        "experimental_distribute": (DistributeOptions, DistributeOptions),
        "experimental_external_state_policy": (ExternalStatePolicy, None),
        "experimental_optimization": (OptimizationOptions, OptimizationOptions),
        "experimental_slack": (bool, None),
        "experimental_symbolic_checkpoint": (bool, None),
        "experimental_warm_start": (bool, None),
        "dataset_name": (str, None),
        "framework_type": (list, None),
        "threading": (ThreadingOptions, ThreadingOptions),
    }

    # Deprecated names of settings.
    _ALIASES: ClassVar[dict[str, str]] = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(self._ALIASES.get(name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._ALIASES.get(name, name), value)
