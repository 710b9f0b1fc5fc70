# SPDX-License-Identifier: Apache-2.0
"""What the configuration says of a DUT that is a DNS64 server (RFC 8219 section 9), and of its names."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address

from dutperf.model import Value
from dutperf.model.questions import PREFIX, ZONE, Prefix, Zone


class Dns64Setup(Value):
    """The tester's client is at the left port, its name server at the right one, unless another server answers."""

    server: IPv6Address
    """The DUT's address, which the client asks."""
    prefix: Prefix = PREFIX
    """With which the DUT makes an AAAA record of an A record."""
    zone: Zone = ZONE
    """Of the names. The DUT asks the tester's name server for them, or the other one."""
    addresses: IPv4Network | None = None
    """The DUT asks another name server than the tester's, which has a name for each of these addresses,
    ``aaa-bbb-ccc-ddd``, with the address as its A record. None: it asks the tester's."""
