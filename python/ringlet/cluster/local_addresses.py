"""Local addresses: determines which addresses of a cluster belong to this machine."""

from __future__ import annotations

import functools
import ipaddress
import socket
from collections.abc import Sequence

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def host_of(address: str) -> str:
    """Return the host of an address, without its port and in lower case."""
    return host_and_port(address)[0]


def host_and_port(address: str) -> tuple[str, str]:
    """Return the host of an address in lower case, and its port, which may be empty."""
    text = str(address).strip().rpartition("//")[2].lower()
    host, _, port = text[1:].partition("]") if text.startswith("[") else text.partition(":")
    return (text, "") if not text.startswith("[") and ":" in port else (host, port.removeprefix(":"))


def canonical_address(address: str) -> str:
    """Return ``localhost:port`` if an address reaches that port of this machine; otherwise return the address."""
    host, port = host_and_port(address)
    return f"localhost:{port}" if _is_localhost(host) else address


@functools.cache
def _is_localhost(host: str) -> bool:
    # A server that listens at localhost is reachable through only one loopback address of each family.
    mains = ("127.0.0.1", "::1")
    return _is_named_here(host) or any(
        _is_own(address) and (not address.is_loopback or str(address) in mains) for address in _resolved(host)
    )


def foreign_addresses(addresses: Sequence[str], own: str) -> list[str]:
    """Return the addresses whose hosts are other machines or unknown; `own` is an address of this machine."""
    known = {host_of(own): True}
    for address in addresses:
        host = host_of(address)
        if host not in known:
            known[host] = _is_here(host)
    return [address for address in addresses if not known[host_of(address)]]


def resolves_elsewhere(addresses: Sequence[str]) -> list[str]:
    """Return the addresses whose hosts can be resolved, and are other machines."""
    foreign = {host for host in map(host_of, addresses) if not _is_here(host) and _resolved(host)}
    return [address for address in addresses if host_of(address) in foreign]


def _is_here(host: str) -> bool:
    return _is_named_here(host) or any(map(_is_own, _resolved(host)))


def _is_named_here(host: str) -> bool:
    # An empty host means all addresses of the machine.
    return host in ("", "localhost", socket.gethostname().lower()) or host.endswith(".localhost")


def _resolved(host: str) -> list[_Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def _is_own(address: _Address) -> bool:
    """Return whether a socket of this machine can be bound to the address."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((str(address), 0))
    except OSError:
        return False
    return True
