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
from ringlet.config import __version__ as __version__
from ringlet.config import show_config as show_config
from ringlet.coordinator.server import Server as Server
from ringlet.data import DistributedDataset as DistributedDataset
from ringlet.data import DistributedIterator as DistributedIterator
from ringlet.data import InputContext as InputContext
from ringlet.data import InputOptions as InputOptions
from ringlet.data import InputReplicationMode as InputReplicationMode
from ringlet.devices import set_logical_devices as set_logical_devices
from ringlet.launcher.launch import launch as launch
from ringlet.rank_zero import ChiefLogFilter as ChiefLogFilter
from ringlet.rank_zero import is_chief as is_chief
from ringlet.rank_zero import local_rank as local_rank
from ringlet.rank_zero import once_per_host as once_per_host
from ringlet.rank_zero import print0 as print0
from ringlet.rank_zero import progress as progress
from ringlet.rank_zero import rank as rank
from ringlet.rank_zero import size as size
from ringlet.strategy import CrossDeviceOps as CrossDeviceOps
from ringlet.strategy import DirectAllReduce as DirectAllReduce
from ringlet.strategy import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from ringlet.strategy import MirroredStrategy as MirroredStrategy
from ringlet.strategy import NcclAllReduce as NcclAllReduce
from ringlet.strategy import OneDeviceStrategy as OneDeviceStrategy
from ringlet.strategy import ReductionToOneDevice as ReductionToOneDevice
from ringlet.strategy import ReplicaContext as ReplicaContext
from ringlet.strategy import RingAllReduce as RingAllReduce
from ringlet.strategy import RunOptions as RunOptions
from ringlet.strategy import Strategy as Strategy
from ringlet.strategy import StrategyExtended as StrategyExtended
from ringlet.strategy import experimental_set_strategy as experimental_set_strategy
from ringlet.strategy import get_replica_context as get_replica_context
from ringlet.strategy import get_strategy as get_strategy
from ringlet.strategy import has_strategy as has_strategy
from ringlet.strategy import in_cross_replica_context as in_cross_replica_context
from ringlet.strategy import replica_context as replica_context
from ringlet.strategy import set_strategy as set_strategy
from ringlet.strategy.api.batch_map import map as map
from ringlet.strategy.multi_worker.multi_worker_strategy import (
    MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from ringlet.strategy.parameter_server.parameter_server_strategy import (
    ParameterServerStrategy as ParameterServerStrategy,
)
from ringlet.strategy.tpu.tpu_strategy import TPUStrategy as TPUStrategy
from ringlet.tf_function import function as function
from ringlet.values import DistributedValues as DistributedValues
from ringlet.values import IndexedSlices as IndexedSlices
from ringlet.values import Variable as Variable
from ringlet.values import VariableAggregation as VariableAggregation
from ringlet.values import VariableSynchronization as VariableSynchronization
