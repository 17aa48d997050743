"""The ``tf.distribute`` programming model for NumPy, on a C++ all-reduce core.

A strategy runs one function on every replica, each with its slice of the data, and combines their results. Names
load on first use: ``import ringlet`` by itself does not import NumPy. ``help(ringlet.NAME)`` describes a name.

Strategies
    MirroredStrategy             replicas as threads of this process
    MultiWorkerMirroredStrategy  replicas in all processes of a cluster, which ``ringlet run`` or `launch` starts
    ParameterServerStrategy      variables on parameter servers, functions on workers; see `coordinator` and `Server`
    TPUStrategy                  replicas placed on the cores of a TPU slice, without a TPU
    OneDeviceStrategy            one replica
    Strategy, StrategyExtended, RunOptions, CrossDeviceOps and its subclasses DirectAllReduce, RingAllReduce,
    ReductionToOneDevice, HierarchicalCopyAllReduce, NcclAllReduce
Inside and around a step
    replica_context, get_replica_context, ReplicaContext, ReduceOp, in_cross_replica_context
    get_strategy, has_strategy, set_strategy, experimental_set_strategy, function
    map                          a function applied to batches of rows on all cores
    Variable, VariableAggregation, VariableSynchronization, IndexedSlices, DistributedValues
Input
    data                         datasets: pipelines over arrays and files
    DistributedDataset, DistributedIterator, InputContext, InputOptions, InputReplicationMode
Without a strategy
    collectives                  all-reduce, other collectives and messages among threads or processes
    sharding                     arrays divided into tiles over devices, and the transfers between the devices
    tpu                          TPU slices: topology, placement, cost, drawings
    empty_shared                 an array in memory that processes share
Processes and clusters
    launch, Server               start workers; run as a task of a cluster
    cluster_resolver             find the cluster of this process
    rank, size, local_rank, is_chief, print0, progress, once_per_host, ChiefLogFilter
The rest
    train                        checkpoints
    compat                       ``from ringlet.compat import tf`` for programs written for TensorFlow
    experimental                 names of ``tf.distribute.experimental``
    errors, checks, testing      exception classes; equality over replicas; reference reductions
    observe                      statistics of collectives, and timelines of a program
    show_config, set_logical_devices; in a shell, ``ringlet doctor`` checks this machine

Examples
--------
>>> import numpy as np
>>> import ringlet
>>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
>>> def step(x):
...     replica = ringlet.replica_context()
...     return replica.all_reduce(ringlet.ReduceOp.SUM, x * (replica.replica_id_in_sync_group + 1))
>>> for result in strategy.experimental_local_results(strategy.run(step, args=(np.ones(3),))):
...     print(result)
[3. 3. 3.]
[3. 3. 3.]
"""

from __future__ import annotations

import os as _os

from ringlet.module_names import load_on_use as _load_on_use

# Public name -> module below ringlet that defines it. A submodule maps to itself. `__init__.pyi` has the same names
# for type checkers; a test compares the two.
_PUBLIC = {
    # strategies and their contexts
    "DistributedValues": "values",
    "MirroredStrategy": "strategy.api.mirrored_strategy",
    "MultiWorkerMirroredStrategy": "strategy.multi_worker.multi_worker_strategy",
    "OneDeviceStrategy": "strategy.api.one_device_strategy",
    "ParameterServerStrategy": "strategy.parameter_server.parameter_server_strategy",
    "ReplicaContext": "strategy.replica.replica_context",
    "RunOptions": "strategy.calls.run_options",
    "Strategy": "strategy.api.strategy",
    "StrategyExtended": "strategy.api.extended",
    "TPUStrategy": "strategy.tpu.tpu_strategy",
    # variables
    "IndexedSlices": "values",
    "Variable": "values",
    "VariableAggregation": "values",
    "VariableSynchronization": "values",
    # the current strategy and the current replica
    "experimental_set_strategy": "strategy.api.current_strategy",
    "get_replica_context": "strategy.api.current_strategy",
    "get_strategy": "strategy.api.current_strategy",
    "has_strategy": "strategy.api.current_strategy",
    "in_cross_replica_context": "strategy.api.current_strategy",
    "map": "strategy.api.batch_map",
    "replica_context": "strategy.api.current_strategy",
    "set_strategy": "strategy.api.current_strategy",
    # for programs written for tf.function
    "function": "tf_function",
    # distributed datasets
    "DistributedDataset": "data",
    "DistributedIterator": "data",
    "InputContext": "data",
    "InputOptions": "data",
    "InputReplicationMode": "data",
    # reductions of replicas' values
    "CrossDeviceOps": "strategy.api.cross_device_ops",
    "DirectAllReduce": "strategy.api.cross_device_ops",
    "HierarchicalCopyAllReduce": "strategy.api.cross_device_ops",
    "NcclAllReduce": "strategy.api.cross_device_ops",
    "ReduceOp": "collectives",
    "ReductionToOneDevice": "strategy.api.reduction_to_one_device",
    "RingAllReduce": "strategy.api.cross_device_ops",
    # helpers for programs that run in several processes
    "ChiefLogFilter": "rank_zero.log_filter",
    "is_chief": "rank_zero.process_role",
    "local_rank": "rank_zero.process_role",
    "once_per_host": "rank_zero.once",
    "print0": "rank_zero.printing",
    "progress": "rank_zero.progress",
    "rank": "rank_zero.process_role",
    "size": "rank_zero.process_role",
    # shared memory
    "empty_shared": "collectives",
    # starting worker processes
    "Server": "coordinator.server",
    "launch": "launcher.launch",
    # this machine
    "set_logical_devices": "devices",
    "show_config": "config",
    "__version__": "version",
    # submodules
    "checks": "checks",
    "cluster_resolver": "cluster_resolver",
    "collectives": "collectives",
    "compat": "compat",
    "coordinator": "coordinator",
    "data": "data",
    "errors": "errors",
    "experimental": "experimental",
    "observe": "observe",
    "sharding": "sharding",
    "testing": "testing",
    "tpu": "tpu",
    "train": "train",
}

# Names commonly expected at the top level, and the modules that define them.
_ELSEWHERE = {
    "Checkpoint": "train",
    "ClusterCoordinator": "coordinator",
    "ClusterSpec": "train",
    "Dataset": "data",
    "DeviceAssignment": "tpu",
    "LocalClusterResolver": "cluster_resolver",
    "Mesh": "sharding",
    "PerReplica": "values",
    "all_reduce": "replica_context()",
    "NamedSharding": "sharding",
    "PartitionSpec": "sharding",
    "Topology": "tpu",
    "device_put": "sharding",
    "explain": "sharding",
    "init_process_group": "collectives",
    "shard": "sharding",
}

_TENSORFLOW = "write `from ringlet.compat import tf` for TensorFlow's names, or ringlet.X for tf.distribute.X"
_ADVICE = {name: f"write ringlet.{home}.{name}" for name, home in _ELSEWHERE.items()}
_ADVICE |= dict.fromkeys(("starmap", "Pool", "Parallel"), "write ringlet.map(fn, *arrays)")
_ADVICE |= dict.fromkeys(("run", "spawn"), "write ringlet.launch(fn, 2), or `ringlet run -n 2 script.py` in a shell")
_ADVICE |= dict.fromkeys(("get_world_size", "world_size"), "write ringlet.size()")
_ADVICE |= {"get_rank": "write ringlet.rank()", "init": "write ringlet.collectives.init_process_group()"}
_ADVICE |= dict.fromkeys(("distribute", "tf", "constant", "keras"), _TENSORFLOW)

__getattr__ = _load_on_use(__name__, _PUBLIC, _ADVICE)


def __dir__() -> list[str]:  # no `__all__`: with it, help(ringlet) would print every class in full
    return sorted(_PUBLIC)


if "RINGLET_UNCAUGHT" in _os.environ:  # set by `ringlet run` for its workers
    from ringlet.ipc.uncaught_exceptions import report_uncaught as _report_uncaught

    _report_uncaught(_os.environ["RINGLET_UNCAUGHT"])
