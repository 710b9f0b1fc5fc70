# SPDX-License-Identifier: Apache-2.0
"""Questions to a DNS64 server and the answers of the tester's own name server (RFC 8219 section 9), as a trial has
them, and what was counted of them. protocol/README.md has the names and the addresses behind them."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from math import gcd
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dutperf.model.described_frame import FCS_SIZE
from dutperf.model.value import Count, Value

ZONE = "dutperf.test"
"""Zone of the names that are asked for; ``.test`` is nobody's (RFC 6761)."""
PREFIX = IPv6Network("64:ff9b::/96")
"""The well-known prefix (RFC 6052 section 2.1)."""
PREFIX_LENGTHS = (32, 40, 48, 56, 64, 96)
"""Of RFC 6052 section 2.2."""
MOST_CACHED = 1_000_000
_PORT_RANGES = 8
"""A divisor of the trial numbers: behind the last one comes 0."""
_FIRST_LABEL, _LABEL_OF_ADDRESS = 19, 15
_HEADERS = 14 + 40 + 8 + 12
"""Ethernet, IPv6, UDP and the DNS header."""
_TYPE_AND_CLASS, _OPT = 4, 11
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ZONE = rf"^{_LABEL}(\.{_LABEL}){{0,7}}$"
_LONGEST_ZONE = 64
_MOST = 1 << 30


NameNumber = Annotated[int, Field(ge=0, le=2**53)]
"""Names of addresses are numbered through all trials."""


def _is_zone(zone: object) -> object:
    """Says what the limits of the type are for."""
    if isinstance(zone, str) and (len(zone) > _LONGEST_ZONE or not re.fullmatch(_ZONE, zone)):
        raise ValueError(
            f"is not a zone: give up to 8 labels of up to 63 lower-case letters, digits and hyphens, as in {ZONE}, and"
            f" {_LONGEST_ZONE} characters in all"
        )
    return zone


Zone = Annotated[str, Field(max_length=_LONGEST_ZONE, pattern=_ZONE), BeforeValidator(_is_zone)]


def _has_length_of_the_standard(prefix: IPv6Network) -> IPv6Network:
    if prefix.prefixlen not in PREFIX_LENGTHS:
        lengths = ", ".join(map(str, PREFIX_LENGTHS[:-1]))
        raise ValueError(f"should have a length of {lengths} or {PREFIX_LENGTHS[-1]} bits (RFC 6052 section 2.2)")
    return prefix


Prefix = Annotated[IPv6Network, AfterValidator(_has_length_of_the_standard)]


class Spread(Value):
    """``m`` of ``n`` in a row, evenly spread: number k is one if (k + 1) m / n and k m / n differ as whole numbers."""

    n: Annotated[int, Field(ge=1, le=1000)]
    m: Annotated[int, Field(ge=0, le=1000)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.m > self.n:
            raise ValueError(f"{self.m} of {self.n} are too many")
        return self

    @classmethod
    def percent(cls, share: int) -> Self:
        common = gcd(share, 100)
        return cls(n=100 // common, m=share // common)


class CachedNames(Spread):
    """``m`` of ``n`` queries ask again for one of so many ``names``, in turn, that the trial of the number ``trial``
    has asked for."""

    names: Annotated[int, Field(ge=1, le=MOST_CACHED)]
    trial: Annotated[int, Field(ge=0, le=65535)] | None = None
    first: NameNumber | None = None
    """Of names of addresses, instead of ``trial``: the number of the first one."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if (self.trial is None) == (self.first is None):
            raise ValueError("cached names have either the number of their trial, or of the first of their addresses")
        return self


class Slices(Value):
    """Bursts of so many queries belong to each slice in turn; a slice counts through so many ``names`` of its own."""

    count: Annotated[int, Field(ge=1, le=_MOST)]
    burst: Annotated[int, Field(ge=1, le=_MOST)]
    names: Annotated[int, Field(ge=1, le=_MOST)]


class AddressNames(Value):
    """Names of the addresses of a network, ``aaa-bbb-ccc-ddd`` in the zone, which another server knows. A trial's
    count from the number ``first`` on; behind the network's last address they begin again."""

    network: IPv4Network
    first: NameNumber = 0
    slices: Slices | None = None


class SourcePorts(Value):
    """UDP ports of the client, in turn. With the 16 bits of the ID they number the queries of a trial."""

    first: Annotated[int, Field(ge=1024, le=65535)] = 10_000
    count: Annotated[int, Field(ge=1, le=16_384)] = 4_096

    @classmethod
    def of_trial(cls, number: int) -> Self:
        """Ports that none of the seven trials before has."""
        usual = cls()
        return cls(first=usual.first + number % _PORT_RANGES * usual.count)


class Questions(Value):
    """Queries for AAAA over IPv6, each for a name of its own unless it is a cached one."""

    source: IPv6Address
    destination: IPv6Address
    source_ports: SourcePorts = SourcePorts()
    destination_port: Annotated[int, Field(ge=1, le=65535)] = 53
    zone: Zone = ZONE
    prefix: Prefix = PREFIX
    """With which the DUT makes an AAAA record of an A record."""
    aaaa: Spread = Spread(n=1, m=0)
    """Names that have an AAAA record themselves."""
    cached: CachedNames | None = None
    addresses: AddressNames | None = None
    """None: the names are the trial's own, which the tester's name server knows."""

    def new_names(self, queries: int) -> int:
        """How many of the first ``queries`` ask for names that are not cached."""
        return queries if self.cached is None else queries - queries * self.cached.m // self.cached.n

    def counting_from(self, first: int, cached_first: int) -> Self:
        """With names of addresses from number ``first`` on, and cached ones from ``cached_first`` on."""
        assert self.addresses is not None
        cached = self.cached and self.cached.model_copy(update={"first": cached_first})
        addresses = self.addresses.model_copy(update={"first": first})
        return self.model_copy(update={"addresses": addresses, "cached": cached})

    @property
    def frame_size(self) -> int:
        """Of a query, in bytes with FCS."""
        name = 1 + (_FIRST_LABEL if self.addresses is None else _LABEL_OF_ADDRESS) + 1 + len(self.zone) + 1
        return _HEADERS + name + _TYPE_AND_CLASS + _OPT + FCS_SIZE


class NameServer(Value):
    """The tester's authoritative server for all names of the zone, at one of its ports."""

    port: Literal["left", "right"] = "right"
    zone: Zone = ZONE
    ttl_s: Annotated[int, Field(ge=0, le=2**31 - 1)] = 86_400


WRONG_BY_CONTENT = ("nxdomain", "refused", "wrong_prefix", "wrong_address", "truncated")
"""Not ``servfail`` and ``nodata``: a DUT that waits for an answer in vain may say so (Unbound has no records if only
its query for the A record was lost)."""


class Answers(Value):
    """What came instead of right answers, by kind: ``nodata``, ``nxdomain``, ``servfail``, ``refused``,
    ``other_rcode``, ``wrong_prefix``, ``wrong_address``, ``truncated``, ``malformed``, ``unexpected``."""

    wrong: dict[str, Count]

    @property
    def by_content(self) -> int:
        """Answers that are wrong whenever they come: no lateness or loss of the tester's makes such ones."""
        return sum(self.wrong.get(kind, 0) for kind in WRONG_BY_CONTENT)

    def in_words(self) -> str:
        """``12 servfail, 3 wrong prefix``; empty: nothing."""
        return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in self.wrong.items() if count)


class ServerQueries(Value):
    """Well-formed queries for names of the trial, by type. ``other`` also has those about the zone itself."""

    a: Count = 0
    aaaa: Count = 0
    other: Count = 0


class ServerDelay(Value):
    """How long queries may have waited in the tester's own server, in ns."""

    median: float
    p99: float
    max: float


class ServerCounts(Value):
    """What the tester's own server did in a trial (event.schema.json, ``server``)."""

    queries: ServerQueries = ServerQueries()
    stale: Count = 0
    """For names of an earlier trial, or of another run."""
    unknown: Count = 0
    refused: Count = 0
    malformed: Count = 0
    tcp: Count = 0
    """Of all these, over TCP."""
    answered: Count = 0
    unsent: Count = 0
    """Answers that could not be sent."""
    delay_ns: ServerDelay | None = None
    """None: there were no queries."""
    tester_drops: dict[str, Count] = Field(default_factory=dict)

    @property
    def dropped(self) -> int:
        """Queries and answers that the tester itself lost."""
        return self.unsent + sum(self.tester_drops.values())
