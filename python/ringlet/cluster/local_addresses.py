"""Which addresses of a cluster are those of this machine."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

__all__ = ["foreign_addresses", "host_of"]


def host_of(address: str) -> str:
    """Give the host of an address, without its port and in small letters.

    Examples
    --------
    >>> [host_of(address) for address in ("Node7:2222", "[::1]:2222", "::1", "10.0.0.1", "grpc://a:1")]
    ['node7', '::1', '::1', '10.0.0.1', 'a']
    """
    text = str(address).strip().rpartition("//")[2].lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text if text.count(":") > 1 else text.partition(":")[0]


def foreign_addresses(addresses: Sequence[str], own: str) -> list[str]:
    """Give those addresses that are not of this machine, as far as can be told.

    Parameters
    ----------
    addresses : sequence of str
        Of all workers.
    own : str
        Of this one: whatever its host is, it is this machine.

    Returns
    -------
    list of str

    Examples
    --------
    >>> foreign_addresses(["here:1", "here:2", "localhost:3", "127.0.0.9:1", "[::1]:1", "203.0.113.7:1"], own="here:1")
    ['203.0.113.7:1']
    """
    known = {host_of(own): True}
    for address in addresses:
        host = host_of(address)
        if host not in known:
            known[host] = _is_here(host)
    return [address for address in addresses if not known[host_of(address)]]


def _is_here(host: str) -> bool:
    # An empty host is what programs write that listen on all addresses of the machine.
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
    """Whether a socket of this machine can have the address."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((str(address), 0))
    except OSError:
        return False
    return True
