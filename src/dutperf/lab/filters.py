# SPDX-License-Identifier: Apache-2.0
"""Filters of a kernel router (RFC 2544 11.4, RFC 5180 6.2), as an nftables ruleset. :func:`main` prints it for
the number of filters in DUTPERF_FILTERS.

Each port of the router has a list for IPv4 and one for IPv6. All but the last of its filters deny
addresses that no test frame has, the last one permits the test frames, and everything else is denied. So
every forwarded packet is compared with all filters. 0 filters: the table is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from dutperf.lab.addresses import LEFT, RIGHT
from dutperf.lab.netns import DUT_PORTS

VARIABLE = "DUTPERF_FILTERS"
"""Environment variable with the number of filters."""
FAR = 100
"""Network of a denied destination, above that of its source (RFC 2544 11.4.1)."""
TABLE = "filters"
SHOWN = f"nft --stateless list table inet {TABLE}"
"""Prints the rules without their counts, which differ from time to time."""
_DENIED4 = ("198.18.{0}.{0} ip daddr 198.19.{1}.{0}", "198.19.{0}.{0} ip daddr 198.18.{1}.{0}")
_DENIED6 = (
    "2001:2:0:{0:x}::1 ip6 daddr 2001:2:0:80{1:02x}::1",
    "2001:2:0:80{0:02x}::1 ip6 daddr 2001:2:0:{1:x}::1",
)
"""From the left and from the right: source and destination of a filter that denies. RFC 2544 11.4.1 has the
networks 1 to 24 and 101 to 124; test frames come from host 2 of network 0."""


def ruleset(filters: int) -> str:
    """The table with so many filters in each list, instead of an earlier one."""
    empty = f"table inet {TABLE} {{ }}\ndelete table inet {TABLE}\n"
    if not filters:
        return empty
    names = [f"from_{port}_{version}" for port in DUT_PORTS for version in (4, 6)]
    jumps = "".join(
        f'    iifname "{port}" meta nfproto ipv{version} jump from_{port}_{version}\n'
        for port in DUT_PORTS
        for version in (4, 6)
    )
    lists = "".join(
        f"  chain {name} {{\n{''.join(f'    {line}{chr(10)}' for line in lines)}  }}\n"
        for name, lines in zip(names, _lists(filters), strict=True)
    )
    forwarded = f"  chain forwarded {{\n    type filter hook forward priority 10; policy accept;\n{jumps}  }}\n"
    return f"{empty}table inet {TABLE} {{\n{lists}{forwarded}}}\n"


def _lists(filters: int) -> Iterator[list[str]]:
    """Of each port and version."""
    for number, (near, far) in enumerate(((LEFT, RIGHT), (RIGHT, LEFT))):
        yield _list("ip", _DENIED4[number], filters, f"ip saddr {near.net4} ip daddr {far.net4}")
        yield _list("ip6", _DENIED6[number], filters, f"ip6 saddr {near.net6} ip6 daddr {far.net6}")


def _list(family: str, denied: str, filters: int, permitted: str) -> list[str]:
    deny = [f"{family} saddr {denied.format(number, FAR + number)} counter drop" for number in range(1, filters)]
    return [*deny, f"{permitted} counter accept", "counter drop"]


def main() -> None:
    print(ruleset(int(os.environ[VARIABLE])), end="")
