"""ClusterResolver, for users to derive from."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterResolver, ClusterSpec
from tests.cluster.contract import ResolverContract


class FileClusterResolver(ClusterResolver):
    """What a user may write: the least that works."""

    def __init__(self, addresses, task_id):
        self._addresses = addresses
        self._task_type, self._task_id = "worker", task_id

    def cluster_spec(self):
        return ClusterSpec({"worker": self._addresses})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None:
            return ""
        address, protocol = self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer
        return f"{protocol}://{address}" if protocol else address


class TestAResolverOfAUser(ResolverContract):
    def make(self):
        return FileClusterResolver(["a:1", "b:1"], 1)


class OtherAttributes(FileClusterResolver):
    """Another way: properties of its own, and no word about what TensorFlow 1 wants."""

    def __init__(self, addresses):
        self._addresses = addresses

    @property
    def task_type(self):
        return "worker"

    @property
    def task_id(self):
        return 0


def test_a_class_without_cluster_spec_or_master_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        ClusterResolver()


def test_what_a_class_does_not_set_is_not_known():
    resolver = FileClusterResolver([], 0)
    resolver.task_type = resolver.task_id = None
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer, resolver.environment) == (None, None, None, "")
    assert resolver.master() == ""


def test_properties_of_a_class_count():
    resolver = OtherAttributes(["a:1"])
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("worker", 0, "a:1")


def test_there_are_no_accelerators():
    assert FileClusterResolver(["a:1"], 0).num_accelerators() == {}
    with pytest.raises(ValueError, match="No task with index 3"):
        FileClusterResolver(["a:1"], 0).num_accelerators("worker", 3)


def test_attributes_of_one_resolver_are_not_those_of_another():
    one, other = FileClusterResolver(["a:1"], 0), FileClusterResolver(["a:1"], 0)
    one.task_type, one.rpc_layer = "ps", "grpc"
    assert (other.task_type, other.rpc_layer) == ("worker", None)
