"""TPUClusterResolver: names, addresses, and the slice behind them."""

from __future__ import annotations

import copy

import pytest

from ringlet.cluster.resolvers.tpu_resolver import TPUClusterResolver
from ringlet.errors import ClusterConfigError
from ringlet.tpu import shutdown_tpu_system
from tests.cluster.contract import ResolverContract

V4_16 = {
    "TPU_ACCELERATOR_TYPE": "v4-16",
    "TPU_WORKER_HOSTNAMES": "h0,h1:9000",
    "TPU_NAME": "mine",
    "TPU_WORKER_ID": "1",
}


def resolver(tpu=None, *, environ=None, **arguments):
    return TPUClusterResolver(tpu, environ=environ or {}, **arguments)


class TestTPUClusterResolver(ResolverContract):
    """Of a slice with two hosts, whose protocol is always the same."""

    def make(self):
        made = resolver("grpc://a:1,grpc://b:2")
        made.task_id = 1
        return made

    def test_the_master_of_a_named_task_is_its_address(self, resolver):
        assert resolver.master("worker", 0) == resolver.master("worker", 0, rpc_layer="http") == "grpc://a:1"


# --- the cluster -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tpu", "environ", "expected"),
    [
        ("grpc://a", {}, ["a:8470"]),
        ("grpc://a:1,grpc://b:2", {}, ["a:1", "b:2"]),
        (["grpc://a:1"], {}, ["a:1"]),
        (b"grpc://a:1", {}, ["a:1"]),
        ("", {}, ["localhost:8470", "localhost:8471"]),
        ("a name", {}, ["localhost:8470", "localhost:8471"]),
        ("a name", {"TPU_ACCELERATOR_TYPE": "v5litepod-4"}, ["localhost:8470"]),
        ("", V4_16, ["h0:8470", "h1:9000"]),
        ("", {"TPU_NAME": "grpc://a:1"}, ["a:1"]),
        ("", {"TPU_NAME": "grpc://a:1", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://b:1"}, ["b:1"]),
        ("grpc://a:1", V4_16 | {"TPU_ACCELERATOR_TYPE": "v4-8"}, ["a:1"]),
    ],
)
def test_hosts_are_those_that_were_named_or_those_of_a_model(tpu, environ, expected):
    assert resolver(tpu, environ=environ).cluster_spec().as_dict() == {"worker": expected}


def test_a_slice_in_this_process_has_no_cluster():
    local = resolver("local")
    assert local.cluster_spec().as_dict() == {}
    assert local.master() == local.get_master() == ""
    assert local.get_tpu_system_metadata().devices[0].name == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_the_master_is_the_first_host_or_the_one_asked_for():
    found = resolver("grpc://a:1,grpc://b:2", job_name="w")
    assert found.master() == found.get_master() == "grpc://a:1"
    assert found.master("w", 1, rpc_layer="other") == "grpc://b:2"
    found.task_id = 1
    assert found.master() == "grpc://b:2"
    with pytest.raises(ValueError, match="No such job"):
        found.master("x", 0)


def test_the_job_and_the_coordinator_are_those_that_were_named():
    found = resolver("grpc://a:1", job_name="w", coordinator_name="c", coordinator_address="d:2")
    assert found.cluster_spec().as_dict() == {"w": ["a:1"], "c": ["d:2"]}
    assert (found.get_job_name(), found.task_type, found.task_id) == ("w", "w", 0)
    assert found.get_coordination_service_leader() == "/job:w/task:0"
    assert resolver("grpc://a:1", coordinator_name="c").cluster_spec().jobs == ["worker", "c"]


def test_the_name_is_that_of_the_environment_where_none_is_given():
    assert resolver(environ=V4_16).tpu_name == "mine"
    assert resolver("other", environ=V4_16).tpu_name == "other"
    assert resolver().tpu_name == ""


@pytest.mark.parametrize(
    ("tpu", "error", "message"),
    [
        ([], ValueError, "At least one TPU must be specified"),
        (["a", "b"], NotImplementedError, "Using multiple TPUs"),
        (5, TypeError, "tpu must be the name of a slice"),
    ],
)
def test_what_names_no_slice_is_refused(tpu, error, message):
    with pytest.raises(error, match=message):
        resolver(tpu)


# --- the slice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tpu", "arguments", "environ", "mesh"),
    [
        ("", {}, {}, [2, 2, 2, 2]),
        ("", {"accelerator_type": "v5p-128"}, V4_16, [4, 4, 4, 2]),
        ("", {}, V4_16, [2, 2, 2, 2]),
        ("v4-128", {}, {}, [4, 4, 4, 2]),
        ("v4-128", {}, V4_16, [2, 2, 2, 2]),
        ("a slice", {}, {}, [2, 2, 2, 2]),
        ("grpc://a", {}, {}, [2, 2, 1, 2]),
        ("grpc://a,grpc://b,grpc://c,grpc://d", {}, {}, [2, 2, 4, 2]),
        ("local", {}, {"TPU_ACCELERATOR_TYPE": "v5litepod-8"}, [2, 4, 1, 1]),
    ],
)
def test_the_slice_is_the_one_that_was_described(tpu, arguments, environ, mesh):
    assert resolver(tpu, environ=environ, **arguments).topology.mesh_shape.tolist() == mesh


def test_addresses_are_as_many_as_the_slice_has_hosts():
    with pytest.raises(
        ClusterConfigError, match=r"the TPU slice v4-16 has 2 hosts, but 1 addresses were given: a:8470"
    ):
        resolver("grpc://a", environ={"TPU_ACCELERATOR_TYPE": "v4-16"}).topology  # noqa: B018  # read to fail


def test_metadata_tells_the_devices_of_the_slice():
    metadata = resolver(accelerator_type="v4-8", job_name="w").get_tpu_system_metadata()
    assert metadata[:3] == (8, 1, 8)
    assert metadata.devices[8].name == "/job:w/replica:0/task:0/device:TPU:7"


def test_the_hardware_is_read_from_a_topology():
    found = resolver()
    assert found.tpu_hardware_feature is None
    with pytest.raises(ValueError, match="not a serialized TopologyProto"):
        found.set_tpu_topology(b"\xff")
    assert found.tpu_hardware_feature is None
    found.set_tpu_topology(bytes([0x2A, 2, 8, 2]))
    assert found.tpu_hardware_feature.embedding_feature == 2


def test_connecting_begins_with_the_devices():
    found = TPUClusterResolver.connect("a slice to connect to")
    assert found.num_accelerators()["TPU"] > 0
    shutdown_tpu_system(found)


def test_it_is_its_own_copy_and_a_context_manager():
    found = resolver()
    assert copy.deepcopy(found) is found
    with found:
        assert found.environment == ""
