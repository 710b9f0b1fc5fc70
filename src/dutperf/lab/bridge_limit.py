# SPDX-License-Identifier: Apache-2.0
"""Limits how many addresses a bridge of the kernel learns: ``bridge_limit.py BRIDGE COUNT``, inside the bridge's
network namespace.

Linux has this limit since 6.7 (IFLA_BR_FDB_MAX_LEARNED), and iproute2 an option for it since 6.8. Without the option
the request to the kernel is made here. A program of its own, which imports nothing of this package.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

_RTM_NEWLINK, _NLM_F_REQUEST, _NLM_F_ACK, _NESTED = 16, 1, 4, 0x8000
_IFLA_LINKINFO, _IFLA_INFO_KIND, _IFLA_INFO_DATA, _IFLA_BR_FDB_MAX_LEARNED = 18, 1, 2, 49


def attribute(kind: int, value: bytes) -> bytes:
    """A netlink attribute (struct nlattr), padded."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def request(index: int, count: int) -> bytes:
    """The message that gives the bridge with this interface index its limit."""
    data = attribute(_IFLA_BR_FDB_MAX_LEARNED, struct.pack("=I", count))
    info = attribute(_IFLA_INFO_KIND, b"bridge\0") + attribute(_IFLA_INFO_DATA | _NESTED, data)
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, 0) + attribute(_IFLA_LINKINFO | _NESTED, info)
    flags = _NLM_F_REQUEST | _NLM_F_ACK
    return struct.pack("=IHHII", 16 + len(body), _RTM_NEWLINK, flags, 1, 0) + body


def limit(bridge: str, count: int) -> None:
    """Raises OSError: there is no such bridge, or the kernel knows no such limit (EINVAL)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(request(socket.if_nametoindex(bridge), count))
        error = -struct.unpack_from("=i", kernel.recv(65536), 16)[0]
    if error:
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    try:
        limit(sys.argv[1], int(sys.argv[2]))
    except OSError as error:
        sys.exit(f"the kernel does not limit the addresses of a bridge (it needs Linux 6.7): {error.strerror}")
