"""Local addresses: determines the addresses of a cluster that belong to this machine."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence


def host_of(address: str) -> str:
    """Return the host of an address, without its port and in lower case."""
    text = str(address).strip().rpartition("//")[2].lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text if text.count(":") > 1 else text.partition(":")[0]


def foreign_addresses(addresses: Sequence[str], own: str) -> list[str]:
    """Return the addresses of workers on other machines; the host of `own` is this machine."""
    known = {host_of(own): True}
    for address in addresses:
        host = host_of(address)
        if host not in known:
            known[host] = _is_here(host)
    return [address for address in addresses if not known[host_of(address)]]


def _is_here(host: str) -> bool:
    # An empty host means all addresses of the machine.
    if host in ("", "localhost", socket.gethostname().lower()) or host.endswith(".localhost"):
        return True
    try:
        return _is_own(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    return any(_is_own(ipaddress.ip_address(str(entry[4][0]).partition("%")[0])) for entry in found)


def _is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
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
