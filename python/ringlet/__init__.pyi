"""The table of public names as type checkers read it; ``__init__.py`` loads them on first use."""

from ringlet import collectives as collectives
from ringlet import data as data
from ringlet import errors as errors
from ringlet import sharding as sharding
from ringlet import testing as testing
from ringlet.collectives import CrossDeviceOps as CrossDeviceOps
from ringlet.collectives import DirectAllReduce as DirectAllReduce
from ringlet.collectives import ReduceOp as ReduceOp
from ringlet.collectives import RingAllReduce as RingAllReduce
from ringlet.config import __version__ as __version__
from ringlet.config import show_config as show_config
from ringlet.devices import set_logical_devices as set_logical_devices
from ringlet.strategy import MirroredStrategy as MirroredStrategy
from ringlet.strategy import ReplicaContext as ReplicaContext
from ringlet.strategy import Strategy as Strategy
from ringlet.strategy import StrategyExtended as StrategyExtended
from ringlet.strategy import experimental_set_strategy as experimental_set_strategy
from ringlet.strategy import get_replica_context as get_replica_context
from ringlet.strategy import get_strategy as get_strategy
from ringlet.strategy import has_strategy as has_strategy
from ringlet.strategy import in_cross_replica_context as in_cross_replica_context
from ringlet.values import DistributedValues as DistributedValues
