# SPDX-License-Identifier: Apache-2.0
"""What the configuration says of a DUT that is a DNS64 server (RFC 8219 section 9)."""

from __future__ import annotations

from ipaddress import IPv6Address

from dutperf.model import Value
from dutperf.model.questions import PREFIX, ZONE, Prefix, Zone


class Dns64Setup(Value):
    """The tester's client is at the left port, its name server at the right one."""

    server: IPv6Address
    """The DUT's address, which the client asks."""
    prefix: Prefix = PREFIX
    """With which the DUT makes an AAAA record of an A record."""
    zone: Zone = ZONE
    """For which the DUT asks the tester's name server."""
