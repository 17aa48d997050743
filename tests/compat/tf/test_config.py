"""tf.config tells of one CPU, and of as many logical devices as there are cores or as were asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import ringlet
from ringlet.compat import tf

HOST = tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")


def printed_by(program, **environment):
    """What a program prints in a process of its own, whose devices nobody has used."""
    done = subprocess.run(
        [sys.executable, "-c", f"from ringlet.compat import tf\n{program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**{name: value for name, value in os.environ.items() if name != "RINGLET_NUM_DEVICES"}, **environment},
    )
    return done.stdout.splitlines()


def test_there_is_one_physical_device():
    assert tf.config.list_physical_devices() == [HOST]
    assert tf.config.list_physical_devices("CPU") == [HOST]
    assert tf.config.list_physical_devices("GPU") == tf.config.list_logical_devices("GPU") == []


def test_logical_devices_are_those_of_a_strategy():
    names = [device.name for device in tf.config.list_logical_devices("CPU")]
    strategy = tf.distribute.MirroredStrategy(tf.config.list_logical_devices("CPU"))
    assert [f"/job:localhost/replica:0/task:0{name}" for name in names] == list(strategy.extended.worker_devices)
    assert strategy.num_replicas_in_sync == ringlet.MirroredStrategy().num_replicas_in_sync


def test_their_number_is_chosen_before_they_are_used():
    lines = printed_by(
        "cpu, = tf.config.list_physical_devices('CPU')\n"
        "print(tf.config.get_logical_device_configuration(cpu))\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)\n"
        "print(len(tf.config.get_logical_device_configuration(cpu)), len(tf.config.list_logical_devices()))\n"
        "print(tf.distribute.MirroredStrategy().num_replicas_in_sync)\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)\n"
        "try:\n"
        "    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    assert lines[:3] == ["None", "3 3", "3"]
    assert lines[3].startswith("Virtual devices cannot be modified after being initialized")


def test_older_names_mean_the_same():
    assert tf.config.experimental.VirtualDeviceConfiguration is tf.config.LogicalDeviceConfiguration
    assert tf.config.experimental.list_physical_devices("CPU") == [HOST]


@pytest.mark.parametrize("setting", [{"memory_limit": 1}, {"experimental_priority": 1}])
def test_what_a_cpu_cannot_be_given_is_refused(setting):
    with pytest.raises(ValueError, match="on CPU virtual devices is currently not supported"):
        tf.config.set_logical_device_configuration(HOST, [tf.config.LogicalDeviceConfiguration(**setting)])


def test_an_unknown_device_is_refused():
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    for call in (
        lambda: tf.config.set_logical_device_configuration(gpu, []),
        lambda: tf.config.get_logical_device_configuration(gpu),
    ):
        with pytest.raises(ValueError, match=r"Unrecognized device.*list_physical_devices"):
            call()


def test_tpus_are_listed_from_their_initialization_on():
    resolvers = [
        tf.distribute.cluster_resolver.TPUClusterResolver(name, accelerator_type="v5e-4") for name in ("x", "local")
    ]
    before = tf.config.list_logical_devices("TPU")
    for resolver in resolvers:
        tf.tpu.experimental.initialize_tpu_system(resolver)
    names = [device.name for device in tf.config.list_logical_devices("TPU") if device not in before]
    for resolver in resolvers:
        tf.tpu.experimental.shutdown_tpu_system(resolver)
    assert names == [
        *(f"/job:worker/replica:0/task:0/device:TPU:{i}" for i in range(4)),
        *(f"/device:TPU:{i}" for i in range(4)),
    ]
    assert tf.config.list_logical_devices("TPU") == before


def test_connecting_checks_what_is_connected_to():
    tf.config.experimental_connect_to_cluster(tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local"))
    with pytest.raises(ValueError, match="must be a `ClusterSpec` or a `ClusterResolver`"):
        tf.config.experimental_connect_to_cluster(5)
    with pytest.raises(ValueError, match="Must provide at least one remote_host"):
        tf.config.experimental_connect_to_host()
