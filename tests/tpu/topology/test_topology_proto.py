"""The bytes of TopologyProto: what is written is read again, and no bytes do anything but parse or be refused."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.tpu import Topology
from ringlet.tpu.topology.topology_proto import TopologyMessage, parse, serialize

INT32 = st.integers(-(2**31), 2**31 - 1)
LISTS = hnp.arrays(np.int32, st.integers(0, 20), elements=INT32)

# Damaged messages; a nightly run reads more.
FUZZ_CASES = 1_000_000 if os.environ.get("RINGLET_CI_NIGHTLY") else 10_000


def varint(value, padding=0):
    """A number as the wire has it; padded with zeros that mean nothing."""
    value %= 2**64
    octets = []
    while True:
        octets.append(value & 0x7F)
        value >>= 7
        if not value:
            break
    octets += [0] * padding
    return bytes([*(octet | 0x80 for octet in octets[:-1]), octets[-1]])


def facts(message):
    return (
        message.mesh_shape.tolist(),
        message.num_tasks,
        message.num_devices_per_task,
        message.device_coordinates.tolist(),
    )


@given(shape=LISTS, tasks=INT32, devices=INT32, coordinates=LISTS)
def test_what_is_written_is_read(shape, tasks, devices, coordinates):
    message = TopologyMessage(shape, tasks, devices, coordinates)
    assert facts(parse(serialize(message))) == facts(message)


def test_an_empty_message_has_no_bytes():
    empty = np.empty(0, np.int32)
    assert serialize(TopologyMessage(empty, 0, 0, empty)) == b""
    assert facts(parse(b"")) == ([], 0, 0, [])


@pytest.mark.parametrize(
    ("data", "read"),
    [
        # unpacked, one by one
        (bytes([8, 1, 8, 2]), ([1, 2], 0, 0, [])),
        # packed lists go on, single numbers are replaced
        (bytes([10, 1, 5, 10, 1, 6, 16, 1, 16, 2]), ([5, 6], 2, 0, [])),
        # a number with more bytes than it needs; a negative one in ten bytes; the low 32 bits of a longer one
        (bytes([16]) + varint(3, padding=2), ([], 3, 0, [])),
        (bytes([24]) + varint(-2), ([], 0, -2, [])),
        (bytes([24]) + varint(2**35 + 7), ([], 0, 7, [])),
        (bytes([34, 12]) + varint(-1) + varint(300), ([], 0, 0, [-1, 300])),
        # unknown fields of every kind, a field in another kind of writing, and an empty group inside a group
        (bytes([0x78, 9, 0x79, *bytes(8), 0x7A, 1, 7, 0x7D, *bytes(4), 0x15, *bytes(4)]), ([], 0, 0, [])),
        (bytes([0x7B, 0x83, 1, 0x84, 1, 0x7C, 16, 4]), ([], 4, 0, [])),
        # the hardware feature, which is passed over
        (bytes([42, 2, 8, 2, 16, 4]), ([], 4, 0, [])),
    ],
)
def test_fields_are_read_however_they_are_written(data, read):
    assert facts(parse(data)) == read


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes([16]), "a number is truncated"),
        (bytes([16, 0x80]), "a number is truncated"),
        (bytes([16, *[0xFF] * 10, 1]), "more than 10 bytes"),
        (bytes([10, 5, 1]), "a field is truncated: 1 of 5 bytes are present"),
        (bytes([10, 1, 0x80]), "a number is truncated"),
        (bytes([10, 11, *[0xFF] * 10, 1]), "a number has more than 10 bytes"),
        (bytes([0, 1]), "the field number 0 is invalid"),
        (bytes([0x7D, 0, 0]), "truncated"),
        (bytes([0x7C]), "field 15 has the invalid wire type"),
        (bytes([0x7E]), "invalid wire type 6"),
        (bytes([0x7B, 0x7B, 0x7C]), "truncated"),
        (bytes([0x7B] * 101 + [0x7C] * 101), "invalid wire type"),
        (bytes([42, 1, 16]), "a number is truncated"),
    ],
)
def test_damaged_bytes_are_refused_with_the_place(data, words):
    with pytest.raises(ValueError, match=rf"(?s)are not a serialized TopologyProto: at byte \d+ .*{words}"):
        parse(data)


def damaged(rng, data):
    """The bytes with a few of them changed, left out or put in."""
    octets = bytearray(data)
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(octets)) if octets else 0
        how = rng.randrange(4)
        if how == 0 and octets:
            octets[place] = rng.randrange(256)
        elif how == 1:
            del octets[place : place + rng.randrange(1, 6)]
        elif how == 2:
            octets.insert(place, rng.choice([0, 1, 8, 10, 16, 24, 34, 42, 127, 128, 255]))
        else:
            octets += octets[: rng.randrange(6)]
    return bytes(octets)


def test_no_damaged_topology_does_anything_but_parse_or_be_refused():
    rng = random.Random(20)
    names = ["v2-8", "v4-16", "v5litepod-16", "v5litepod-1", "tpu7x-8"]
    seeds = [Topology.from_accelerator_type(name).serialized() for name in names]
    parsed = 0
    for _ in range(FUZZ_CASES):
        data = damaged(rng, rng.choice(seeds)) or b"\x08\x01"
        try:
            topology = Topology(serialized=data)
        except ValueError:
            continue
        parsed += 1
        again = Topology(mesh_shape=topology.mesh_shape, device_coordinates=topology.device_coordinates)
        assert topology.serialized() == data
        assert facts(parse(again.serialized())) == facts(parse(data))
    assert parsed > FUZZ_CASES / 10


def test_protobuf_reads_and_writes_the_same():
    protobuf = pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    topology_class, error = message_class(protobuf)
    rng = random.Random(21)
    seeds = [Topology.from_accelerator_type(name).serialized() for name in ("v2-8", "v4-16", "v5litepod-16")]
    for _ in range(FUZZ_CASES):
        data = damaged(rng, rng.choice(seeds))
        theirs = topology_class()
        try:
            theirs.ParseFromString(data)
        except error:
            with pytest.raises(ValueError, match="not a serialized TopologyProto"):
                parse(data)
            continue
        message = parse(data)
        assert facts(message) == (
            list(theirs.mesh_shape),
            theirs.num_tasks,
            theirs.num_tpu_devices_per_task,
            list(theirs.device_coordinates),
        )
        clean = topology_class()
        clean.mesh_shape[:], clean.num_tasks = theirs.mesh_shape, theirs.num_tasks
        clean.num_tpu_devices_per_task = theirs.num_tpu_devices_per_task
        clean.device_coordinates[:] = theirs.device_coordinates
        assert serialize(message) == clean.SerializeToString()


def message_class(_):
    """The class that protobuf makes of a description of the four fields and the message in the fifth."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    described = descriptor_pb2.FileDescriptorProto(name="topology.proto", package="test", syntax="proto3")
    feature = described.message_type.add(name="Feature")
    feature.field.add(name="embedding_feature", number=1, type=5, label=1)
    topology = described.message_type.add(name="Topology")
    for number, name, label in (
        (1, "mesh_shape", 3),
        (2, "num_tasks", 1),
        (3, "num_tpu_devices_per_task", 1),
        (4, "device_coordinates", 3),
    ):
        topology.field.add(name=name, number=number, type=5, label=label)
    topology.field.add(name="tpu_hardware_feature", number=5, type=11, label=1, type_name=".test.Feature")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Topology"))
    return found, message.DecodeError
