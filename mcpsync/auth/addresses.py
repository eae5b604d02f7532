"""Which addresses a URL from metadata may lead to.

Metadata is written by a server that may be hostile, and it makes this machine send requests. It shall not reach what
only this machine can reach. Names are resolved here, once, and the connection is made to an address that was looked
at: a name that means something else a moment later gains nothing.

Specification: `basic/authorization`, security considerations; RFC 9728, 7.7.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Callable, List, Sequence, Union

from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["Resolver", "addresses_of", "as_address", "is_loopback_name", "is_public", "system_resolver"]

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Resolver = Callable[[str], Sequence[str]]
"""The addresses of a name, as texts; raises OSError."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # NAT64: the IPv4 address is in the last 32 bits
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that was ever given out; older ranges may be routed within a site


def system_resolver(host: str) -> List[str]:
    """The addresses that the system knows for a name.

    :raises OSError: there are none
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def addresses_of(host: str, resolver: Resolver, deadline: Deadline) -> List[Address]:
    """The addresses of a host, which may be an address itself.

    :raises AuthError: there are none, or the deadline passed
    """
    literal = as_address(host)
    if literal is not None:
        return [literal]
    found: List[str] = []
    failed: List[OSError] = []
    done = threading.Event()

    def ask() -> None:
        try:
            found.extend(resolver(host))
        except (OSError, UnicodeError) as error:
            failed.append(OSError(str(error)))
        finally:
            done.set()

    # the system's resolver cannot be told when to stop: past the deadline it ends for nobody
    threading.Thread(target=ask, name="mcpsync-auth-resolver", daemon=True).start()
    if not deadline.wait(done):
        raise AuthError("the address of %s could not be found in time" % host)
    addresses = [literal for literal in map(as_address, found) if literal is not None]
    if not addresses:
        raise AuthError("%s has no address: %s" % (host, failed[0] if failed else "the resolver named none"))
    return addresses


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet: not private, local, reserved, or a wrapped one that is."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _translated(address)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


def is_loopback_name(host: str) -> bool:
    """Whether a host, as a URL names it, is this machine without asking anyone."""
    literal = as_address(host)
    if literal is not None:
        return literal.is_loopback
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def as_address(host: str) -> Union[Address, None]:
    """The address that a text is; None: it is a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _translated(address: ipaddress.IPv6Address) -> Union[ipaddress.IPv4Address, None]:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _TRANSLATED else None
