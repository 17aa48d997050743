"""The ``tf.distribute`` programming model for NumPy, on a C++ all-reduce core.

Every public name is listed once, in the table below, and loaded on first use: ``import ringlet`` by itself imports
nothing, not even NumPy.

Examples
--------
>>> import numpy as np
>>> import ringlet
>>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
>>> def step(x):
...     replica = ringlet.get_replica_context()
...     return replica.all_reduce(ringlet.ReduceOp.SUM, x * (replica.replica_id_in_sync_group + 1))
>>> for result in strategy.experimental_local_results(strategy.run(step, args=(np.ones(3),))):
...     print(result)
[3. 3. 3.]
[3. 3. 3.]
"""

from __future__ import annotations

import importlib
import os
import sys

# Public name -> module below ringlet that defines it. A sub-module stands for itself. `__init__.pyi` tells the same to
# type checkers; a test holds the two together.
_PUBLIC = {
    # strategies and what they hand out
    "DistributedValues": "values",
    "MirroredStrategy": "strategy",
    "MultiWorkerMirroredStrategy": "strategy.multi_worker.multi_worker_strategy",
    "OneDeviceStrategy": "strategy",
    "ParameterServerStrategy": "strategy.parameter_server.parameter_server_strategy",
    "ReplicaContext": "strategy",
    "RunOptions": "strategy",
    "Strategy": "strategy",
    "StrategyExtended": "strategy",
    "TPUStrategy": "strategy.tpu.tpu_strategy",
    # variables
    "IndexedSlices": "values",
    "Variable": "values",
    "VariableAggregation": "values",
    "VariableSynchronization": "values",
    # which strategy and which replica is current
    "experimental_set_strategy": "strategy",
    "get_replica_context": "strategy",
    "get_strategy": "strategy",
    "has_strategy": "strategy",
    "in_cross_replica_context": "strategy",
    # programs that were written for tf.function
    "function": "tf_function",
    # what strategies make of datasets
    "DistributedDataset": "data",
    "DistributedIterator": "data",
    "InputContext": "data",
    "InputOptions": "data",
    "InputReplicationMode": "data",
    # how replicas combine their values
    "CrossDeviceOps": "strategy",
    "DirectAllReduce": "strategy",
    "HierarchicalCopyAllReduce": "strategy",
    "NcclAllReduce": "strategy",
    "ReduceOp": "collectives",
    "ReductionToOneDevice": "strategy",
    "RingAllReduce": "strategy",
    # habits of programs that run many times over
    "ChiefLogFilter": "rank_zero",
    "is_chief": "rank_zero",
    "local_rank": "rank_zero",
    "once_per_host": "rank_zero",
    "print0": "rank_zero",
    "progress": "rank_zero",
    "rank": "rank_zero",
    "size": "rank_zero",
    # memory that processes share
    "empty_shared": "collectives",
    # starting worker processes
    "Server": "coordinator.server",
    "launch": "launcher.launch",
    # the machine
    "set_logical_devices": "devices",
    "show_config": "config",
    "__version__": "config",
    # sub-modules
    "checks": "checks",
    "cluster_resolver": "cluster_resolver",
    "collectives": "collectives",
    "compat": "compat",
    "coordinator": "coordinator",
    "data": "data",
    "errors": "errors",
    "experimental": "experimental",
    "sharding": "sharding",
    "testing": "testing",
    "tpu": "tpu",
    "train": "train",
}

__all__ = [name for name in _PUBLIC if not name.startswith("_")]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ringlet' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    module = importlib.import_module(f"{__name__}.{_PUBLIC[name]}")
    value = module if name == _PUBLIC[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PUBLIC)


if "RINGLET_UNCAUGHT" in os.environ:  # a worker of `ringlet run`
    importlib.import_module("ringlet.ipc.uncaught_exceptions").report_uncaught(os.environ["RINGLET_UNCAUGHT"])
