# SPDX-License-Identifier: Apache-2.0
"""Modifiers: further conditions under which the tests are repeated (RFC 2544 section 11, RFC 5180
sections 5.3 and 6, RFC 8219 section 6). A user gives each as a text, :class:`Modifiers` is all of them.

==================================== ==========================================================
``broadcast``                        one frame in a hundred is a hardware broadcast (11.1)
``management``                       an SNMP query as the first frame of each second (11.2)
``routing-updates``                  a RIP update as the first frame, then every 30 s (11.3)
``filters:25``                       the DUT has 25 filters, the last permits the frames (11.4)
``extension-header:destination``     the frames have this IPv6 extension header (RFC 5180 5.3)
==================================== ==========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

MOST_FILTERS = 100
"""Their addresses are different, in one byte."""
HEADERS = {
    "hop-by-hop": "hop_by_hop",
    "routing": f"routing(type=253,segments_left=0,data=0x{'00' * 20})",
    "destination": "dest_options",
    "fragment": "fragment",
    "authentication": "ah",
    "esp": "esp",
    "mobility": "mobility",
}
"""Extension headers by their names, as of :mod:`dutperf.frames`, in the order of the chain that RFC 5180 5.3
recommends. Routers ignore a routing header without segments left (RFC 8200 4.4); its type is one for
experiments (RFC 4727), its 24 bytes are those of RFC 5180."""
LAST = ("esp", "mobility")
"""What follows them in the frames is bytes to every router: ESP encrypts it, and nothing follows a mobility header
(RFC 6275 6.1.1)."""
FORMS = ("broadcast", "management", "routing-updates", "filters:N", "extension-header:NAME")


@dataclass(frozen=True)
class ExtensionHeaders:
    """IPv6 extension headers of the frames."""

    names: tuple[str, ...]
    """In their order in the frame, from :data:`HEADERS`."""
    percent: int = 100
    """Share of the frames that have them."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """``hop-by-hop``, ``routing+destination+fragment``, ``hop-by-hop:10%``. Raises ValueError: the text is none."""
        chain, colon, share = text.partition(":")
        names = tuple(chain.split("+"))
        if not set(names) <= set(HEADERS):
            raise ValueError(
                f"extension-header:{text}: give one of {', '.join(HEADERS)}, several with a + between them"
                " (routing+destination+fragment), and if not all frames have them a share (hop-by-hop:10%)"
            )
        match = re.fullmatch(r"([1-9][0-9]?|100)%", share if colon else "100%")
        if match is None:
            raise ValueError(f"extension-header:{text}: a share of the frames is 1% to 100% in whole per cent")
        if len(set(names)) < len(names):
            raise ValueError(f"extension-header:{text}: the same header twice")
        if "hop-by-hop" in names and len(names) > 1:
            raise ValueError(f"extension-header:{text}: a chain has no hop-by-hop header (RFC 5180 section 5.3)")
        if set(names[:-1]) & set(LAST):
            raise ValueError(f"extension-header:{text}: nothing can follow {' or '.join(LAST)}")
        return cls(names, int(match[1]))

    @property
    def text(self) -> str:
        """As :meth:`parse` reads it."""
        return "+".join(self.names) + ("" if self.percent == 100 else f":{self.percent}%")

    @property
    def headers(self) -> str:
        """As a part of a stack of headers."""
        return "/".join(HEADERS[name] for name in self.names)


@dataclass(frozen=True)
class Modifiers:
    """All modifiers of a measurement."""

    broadcast: bool = False
    management: bool = False
    routing_updates: bool = False
    filters: int | None = None
    """Filters of each interface of the DUT; None: as the DUT is."""
    extension_headers: ExtensionHeaders | None = None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """Modifiers in any order. Raises ValueError: one of them is none, or comes twice."""
        members: dict[str, bool | int | ExtensionHeaders] = {}
        for text in texts:
            name, value = _member(text.strip())
            if name in members:
                raise ValueError(f"{text.partition(':')[0]} is given twice")
            members[name] = value
        return cls(**members)  # type: ignore[arg-type]

    def texts(self) -> tuple[str, ...]:
        """As :meth:`parse` reads them, in the order of :data:`FORMS`."""
        switches = {
            "broadcast": self.broadcast,
            "management": self.management,
            "routing-updates": self.routing_updates,
        }
        filters = () if self.filters is None else (f"filters:{self.filters}",)
        headers = () if self.extension_headers is None else (f"extension-header:{self.extension_headers.text}",)
        return (*(name for name, chosen in switches.items() if chosen), *filters, *headers)


NONE = Modifiers()


def suffix(texts: Sequence[str]) -> str:
    """Part of the name of a measurement under these modifiers: ``-broadcast-filters25``."""
    return "".join("-" + re.sub(r"[^a-z0-9-]", "", text.replace("%", "pc").replace("+", "-")) for text in texts)


def _member(text: str) -> tuple[str, bool | int | ExtensionHeaders]:
    name, colon, value = text.partition(":")
    if text in ("broadcast", "management", "routing-updates"):
        return text.replace("-", "_"), True
    if name == "filters":
        if not re.fullmatch(r"[1-9][0-9]{0,2}", value) or int(value) > MOST_FILTERS:
            raise ValueError(f"{text}: give the number of filters, 1 to {MOST_FILTERS} (RFC 2544 11.4: 1 and 25)")
        return name, int(value)
    if name == "extension-header" and colon:
        return "extension_headers", ExtensionHeaders.parse(value)
    raise ValueError(f"'{text}' is no modifier; there are {', '.join(FORMS)}")
