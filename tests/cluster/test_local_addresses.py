"""Which addresses are those of this machine."""

from __future__ import annotations

import socket

import pytest

from ringlet.cluster import local_addresses
from ringlet.cluster.local_addresses import canonical_address, foreign_addresses, host_of

ELSEWHERE = "203.0.113.7:2222"  # TEST-NET-3 of RFC 5737: nobody has it


@pytest.mark.parametrize(
    ("address", "host"),
    [
        # address, its host
        ("node7:2222", "node7"),
        ("NODE7.Example.org", "node7.example.org"),
        ("10.0.0.1:1", "10.0.0.1"),
        ("[fe80::1]:2222", "fe80::1"),
        ("fe80::1", "fe80::1"),
        ("grpc://node7:2222", "node7"),
        (":2222", ""),
    ],
)
def test_the_host_of_an_address_is_what_is_before_its_port(address, host):
    assert host_of(address) == host


@pytest.mark.parametrize(
    "address",
    ["localhost:1", "LOCALHOST:2", "127.0.0.1:3", "127.9.9.9:4", "[::1]:5", ":6", f"{socket.gethostname()}:7"],
)
def test_names_and_addresses_of_this_machine_are_known(address):
    assert foreign_addresses([address, ELSEWHERE], own="localhost:9") == [ELSEWHERE]


@pytest.mark.parametrize(
    ("address", "spelling"),
    [
        # address, the one spelling of all that are the same endpoint
        ("localhost:7", "localhost:7"),
        ("grpc://LocalHost:7", "localhost:7"),
        ("127.0.0.1:7", "localhost:7"),
        ("[::1]:7", "localhost:7"),
        (":7", "localhost:7"),
        ("0.0.0.0:7", "localhost:7"),
        (f"{socket.gethostname()}:7", "localhost:7"),
        ("127.0.0.2:7", "127.0.0.2:7"),  # another endpoint of this machine
        (ELSEWHERE, ELSEWHERE),
    ],
)
def test_an_endpoint_of_this_machine_has_one_spelling(address, spelling):
    assert canonical_address(address) == spelling


def test_an_address_of_a_network_card_is_the_endpoint_of_localhost(monkeypatch):
    monkeypatch.setattr(local_addresses, "_is_own", lambda address: str(address) == "198.51.100.4")
    local_addresses._is_localhost.cache_clear()
    assert canonical_address("198.51.100.4:7") == "localhost:7"
    local_addresses._is_localhost.cache_clear()


def test_whatever_the_own_host_is_called_it_is_here():
    addresses = ["no-such-host.invalid:1", "no-such-host.invalid:2", ELSEWHERE]
    assert foreign_addresses(addresses, own=addresses[1]) == [ELSEWHERE]


def test_a_name_that_nobody_knows_is_elsewhere():
    assert foreign_addresses(["no-such-host.invalid:1"], own="localhost:1") == ["no-such-host.invalid:1"]
