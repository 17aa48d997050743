"""The table of public names as type checkers read it; ``__init__.py`` loads them on first use."""

from ringlet import checks as checks
from ringlet import cluster_resolver as cluster_resolver
from ringlet import collectives as collectives
from ringlet import compat as compat
from ringlet import coordinator as coordinator
from ringlet import data as data
from ringlet import errors as errors
from ringlet import experimental as experimental
from ringlet import observe as observe
from ringlet import sharding as sharding
from ringlet import testing as testing
from ringlet import tpu as tpu
from ringlet import train as train
from ringlet.collectives import ReduceOp as ReduceOp
from ringlet.collectives import empty_shared as empty_shared
from ringlet.config import show_config as show_config
from ringlet.coordinator.server import Server as Server
from ringlet.data import DistributedDataset as DistributedDataset
from ringlet.data import DistributedIterator as DistributedIterator
from ringlet.data import InputContext as InputContext
from ringlet.data import InputOptions as InputOptions
from ringlet.data import InputReplicationMode as InputReplicationMode
from ringlet.devices import set_logical_devices as set_logical_devices
from ringlet.launcher.launch import launch as launch
from ringlet.rank_zero.log_filter import ChiefLogFilter as ChiefLogFilter
from ringlet.rank_zero.once import once_per_host as once_per_host
from ringlet.rank_zero.printing import print0 as print0
from ringlet.rank_zero.process_role import is_chief as is_chief
from ringlet.rank_zero.process_role import local_rank as local_rank
from ringlet.rank_zero.process_role import rank as rank
from ringlet.rank_zero.process_role import size as size
from ringlet.rank_zero.progress import progress as progress
from ringlet.strategy.api.batch_map import map as map
from ringlet.strategy.api.cross_device_ops import CrossDeviceOps as CrossDeviceOps
from ringlet.strategy.api.cross_device_ops import DirectAllReduce as DirectAllReduce
from ringlet.strategy.api.cross_device_ops import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from ringlet.strategy.api.cross_device_ops import NcclAllReduce as NcclAllReduce
from ringlet.strategy.api.cross_device_ops import RingAllReduce as RingAllReduce
from ringlet.strategy.api.current_strategy import experimental_set_strategy as experimental_set_strategy
from ringlet.strategy.api.current_strategy import get_replica_context as get_replica_context
from ringlet.strategy.api.current_strategy import get_strategy as get_strategy
from ringlet.strategy.api.current_strategy import has_strategy as has_strategy
from ringlet.strategy.api.current_strategy import in_cross_replica_context as in_cross_replica_context
from ringlet.strategy.api.current_strategy import replica_context as replica_context
from ringlet.strategy.api.current_strategy import set_strategy as set_strategy
from ringlet.strategy.api.extended import StrategyExtended as StrategyExtended
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy as MirroredStrategy
from ringlet.strategy.api.one_device_strategy import OneDeviceStrategy as OneDeviceStrategy
from ringlet.strategy.api.reduction_to_one_device import ReductionToOneDevice as ReductionToOneDevice
from ringlet.strategy.api.strategy import Strategy as Strategy
from ringlet.strategy.calls.run_options import RunOptions as RunOptions
from ringlet.strategy.multi_worker.multi_worker_strategy import (
    MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from ringlet.strategy.parameter_server.parameter_server_strategy import (
    ParameterServerStrategy as ParameterServerStrategy,
)
from ringlet.strategy.replica.replica_context import ReplicaContext as ReplicaContext
from ringlet.strategy.tpu.tpu_strategy import TPUStrategy as TPUStrategy
from ringlet.tf_function import function as function
from ringlet.values import DistributedValues as DistributedValues
from ringlet.values import IndexedSlices as IndexedSlices
from ringlet.values import Variable as Variable
from ringlet.values import VariableAggregation as VariableAggregation
from ringlet.values import VariableSynchronization as VariableSynchronization
from ringlet.version import __version__ as __version__
