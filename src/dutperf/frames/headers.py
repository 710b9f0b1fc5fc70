# SPDX-License-Identifier: Apache-2.0
"""The headers of a stack: their fields in the order of the wire, their defaults, and what may follow.

Ethernet, IEEE 802.1Q/802.1ad tags, pause frames (IEEE 802.3, IEEE 802.1Q), ARP (RFC 826), MPLS (RFC 3032), PPP (RFC
1662), IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200, RFC 8754), IPsec (RFC 4302, RFC 4303), Mobility (RFC
6275), UDP, TCP (RFC 9293), ICMP (RFC 792, RFC 4443), IGMP (RFC 1112), GRE (RFC 2784, RFC 2890), VXLAN (RFC 7348), GTP
(3GPP TS 29.281, TS 29.274), PTP (IEEE 1588-2008). The reasons for the defaults are in docs/frames.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from dutperf.frames import options, values
from dutperf.frames.options import IPV4_OPTIONS, IPV6_OPTIONS, TCP_OPTIONS, Kinds, Option
from dutperf.frames.text import Node
from dutperf.frames.values import DECIMAL, FLAGS, HEX, IPV4, IPV6, MAC, Computed, Form, Number

Value = Number | Computed | bytes | tuple[Option, ...] | tuple[Number, ...]
Values = Mapping[str, Value]

SOURCE_PORT, DESTINATION_PORT = 0xC020, 7
"""RFC 2544 C.2.6.4."""
TTL = 10
"""RFC 2544 C.2.6.4."""
EXPERIMENTAL_ETHERTYPE = 0x88B5
"""IEEE 802, local experimental use: for a payload of nothing but the tag."""
EXPERIMENTAL_PROTOCOL = 253
"""RFC 3692: likewise."""
ETHERTYPES = {
    "ipv4": 0x0800,
    "ipv6": 0x86DD,
    "mpls": 0x8847,
    "eth": 0x6558,
    "arp": 0x0806,
    "pause": 0x8808,
    "pfc": 0x8808,
    "ppp": 0x880B,
    "ptp": 0x88F7,
}
"""By the name of the next header; Transparent Ethernet Bridging is for GRE only."""
PROTOCOLS = {
    "hop_by_hop": 0,
    "igmp": 2,
    "ipv4": 4,
    "tcp": 6,
    "udp": 17,
    "ipv6": 41,
    "routing": 43,
    "fragment": 44,
    "gre": 47,
    "esp": 50,
    "ah": 51,
    "dest_options": 60,
    "mobility": 135,
    "mpls": 137,
    "eth": 143,
}
"""IP protocol and next header numbers; ICMP's depends on the version."""
ICMP, ICMPV6 = 1, 58
NO_NEXT_HEADER = 59
ECHO_REQUEST, ECHO_REQUEST_V6 = 8, 128
PPP_PROTOCOLS = {"ipv4": 0x0021, "ipv6": 0x0057, "mpls": 0x0281}
"""RFC 1332, RFC 5072, RFC 3032."""
TUNNEL_PORTS = {"vxlan": 4789, "gtpu": 2152, "mpls": 6635, "gre": 4754}
"""UDP destination ports: RFC 7348, TS 29.281, RFC 7510, RFC 8086."""
GTPC_PORT = 2123
"""UDP destination port, 3GPP TS 29.274 4.2.1."""
PTP_EVENT_PORT = 319
"""UDP destination port of event messages, IEEE 1588-2008 D.2."""
ZERO_CHECKSUM_TUNNELS = ("vxlan", "gtpu")
"""Tunnels that send a zero UDP checksum (RFC 7348 section 5)."""
SEGMENT_ROUTING = 4
"""Routing type of the SRH (RFC 8754)."""
MOST_TAGS = 3


class Role(Enum):
    """What a field means for the rest of the frame."""

    PLAIN = auto()
    TYPE = auto()
    """Says which header follows: varies in the last header only."""
    SHAPE = auto()
    """Determines where other fields are or what they mean: never varies."""
    LENGTH = auto()
    """Never varies; a wrong one is not checked by the receiver."""
    CHECKSUM = auto()
    """A given one is not computed, and not checked by the receiver."""


@dataclass(frozen=True)
class Place:
    """Where a header is in its frame, for the fields that follow from it."""

    next: str | None
    """Name of the next header; of ``eth`` and ``vlan`` the one after all tags. None: the last header."""
    size: int
    """Bytes of this header."""
    rest: int
    """Bytes from its beginning to the end of the frame, without FCS."""
    version: int | None
    """IP version of the nearest IP header up to here."""
    destination: Number | None
    """Destination address of that header."""


@dataclass(frozen=True)
class Field:
    """A field of a header as the text gives it.

    ``bits`` is its width on the wire, 0 for what is no number of fixed width; ``default`` None: it
    follows from the rest of the stack, or is absent. ``note`` says so in the documentation. A field whose
    name begins with ``_`` cannot be given. ``present`` says whether it is on the wire at all.
    """

    name: str
    bits: int
    form: Form = DECIMAL
    default: int | None = None
    role: Role = Role.PLAIN
    note: str = ""
    kinds: Kinds | None = None
    present: Callable[[Values], bool] = lambda _: True

    def read(self, node: Node) -> Value | None:
        """The value of ``node``; None: as if it were not given. Raises FrameError: not a value of this field."""
        if self.kinds is not None:
            return options.read(node, self.kinds)
        return values.read(node, self.form, self.bits)

    def write(self, value: Value) -> str:
        """Text that :meth:`read` reads as ``value``."""
        if self.kinds is not None and isinstance(value, tuple):
            return options.write(tuple(one for one in value if isinstance(one, Option)), self.kinds)
        assert isinstance(value, Number)
        return values.write(value, self.form, self.bits)


@dataclass(frozen=True)
class _Checksum(Field):
    """``yes``: the engine computes it. ``no``: UDP sends 0 then, GRE has no such field, others cannot do
    without."""

    without: Literal["refused", "zero", "absent"] = "refused"

    def read(self, node: Node) -> Value | None:
        if node.word not in ("yes", "no"):
            return super().read(node)
        if node.word == "yes":
            return Computed.YES
        if self.without == "refused":
            raise node.error("this checksum cannot be left out; give a number for a wrong one")
        return 0 if self.without == "zero" else None

    def write(self, value: Value) -> str:
        return value.value if isinstance(value, Computed) else super().write(value)


@dataclass(frozen=True)
class _Bytes(Field):
    """Bytes in hexadecimal."""

    def read(self, node: Node) -> Value | None:
        return options.read_bytes(node)

    def write(self, value: Value) -> str:
        assert isinstance(value, bytes)
        return options.write_bytes(value)


@dataclass(frozen=True)
class _Size(Field):
    """A number that is not on the wire itself, and does not vary."""

    def read(self, node: Node) -> Value | None:
        return values.read_fixed(node, DECIMAL, 16)

    def write(self, value: Value) -> str:
        return str(value)


@dataclass(frozen=True)
class _Segments(Field):
    """Addresses in brackets, in the order in which they are visited."""

    def read(self, node: Node) -> Value | None:
        if not node.is_list:
            raise node.error(f"{self.name} are a list in brackets: [2001:2::5,2001:2::6]")
        if not 1 <= len(node.arguments or ()) <= 127:
            raise node.error(f"{self.name} are 1 to 127 addresses, not {len(node.arguments or ())}")
        return tuple(values.read(one, IPV6, 128) for one in node.arguments or ())

    def write(self, value: Value) -> str:
        assert isinstance(value, tuple)
        return f"[{','.join(values.write(one, IPV6, 128) for one in value if isinstance(one, Number))}]"


@dataclass(frozen=True)
class Cell:
    """Bits on the wire. ``value`` None: computed from the :class:`Place`."""

    name: str
    bits: int
    value: Number | Computed | None
    role: Role = Role.PLAIN


@dataclass(frozen=True)
class HeaderKind:
    """A header: its fields in the order of the wire, and the names of the headers that may follow it.

    ``tail`` makes what follows the fields: options, segments; it raises ValueError for a header that is
    not possible. ``computed`` gives the values of fields without default. ``covered`` is what its
    checksum covers: the header itself, the rest of the frame from it on, or either with a pseudo-header.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    carries: tuple[str, ...]
    computed: Callable[[Place, Values], Mapping[str, int]] = lambda _place, _values: {}
    tail: Callable[[Values], Iterator[Cell]] = lambda _values: iter(())
    is_last_possible: bool = True
    covered: Literal["header", "rest", "pseudo and header", "pseudo and rest"] = "pseudo and rest"

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the fields that can be given."""
        return tuple(one.name for one in self.fields if not one.name.startswith("_"))

    def field(self, name: str) -> Field:
        """The field of that name, which is known."""
        return next(one for one in self.fields if one.name == name)

    def cells(self, given: Values) -> list[Cell]:
        """Its bits in the order of the wire. Raises ValueError: values that do not go together; the text says which."""
        on_wire = [one for one in self.fields if one.bits and one.present(given)]
        cells = [Cell(one.name, one.bits, _number_of(given.get(one.name, one.default)), one.role) for one in on_wire]
        return [*cells, *self.tail(given)]


def _number_of(value: Value | None) -> Number | Computed | None:
    assert value is None or isinstance(value, Number | Computed)
    return value


def _bytes_cell(data: bytes) -> Iterator[Cell]:
    if data:
        yield Cell("_bytes", 8 * len(data), int.from_bytes(data, "big"))


def options_of(given: Values) -> tuple[Option, ...]:
    found = given.get("options", ())
    return tuple(one for one in found if isinstance(one, Option)) if isinstance(found, tuple) else ()


def trailer_of(given: Values) -> int:
    """Bytes behind the packet in a header, which belong to its payload alone."""
    return _fixed(given, "trailer") or 0


def _fixed(given: Values, name: str) -> int | None:
    value = given.get(name)
    return value if isinstance(value, int) else None


def _reserved(bits: int) -> Field:
    return Field("_reserved", bits, default=0)


def _type(name: str, bits: int, note: str = "by the next header", form: Form = DECIMAL) -> Field:
    return Field(name, bits, form, role=Role.TYPE, note=note)


def _length(name: str, bits: int) -> Field:
    return Field(name, bits, role=Role.LENGTH, note="computed")


def _checksum(
    note: str = "computed",
    without: Literal["refused", "zero", "absent"] = "refused",
    present: Callable[[Values], bool] = lambda _: True,
) -> Field:
    return _Checksum("checksum", 16, HEX, role=Role.CHECKSUM, note=note, present=present, without=without)


def ethertype(place: Place) -> int:
    return ETHERTYPES.get(place.next or "", EXPERIMENTAL_ETHERTYPE)


def protocol(place: Place) -> int:
    if place.next == "icmp":
        return ICMP if place.version == 4 else ICMPV6
    return PROTOCOLS.get(place.next or "", EXPERIMENTAL_PROTOCOL)


def _ipv4_tail(given: Values) -> Iterator[Cell]:
    data = options.padded_to_4(options.encode(options_of(given), IPV4_OPTIONS))
    if len(data) > 40:
        raise ValueError(f"the options have {len(data)} bytes; at most 40 are possible")
    return _bytes_cell(data)


def _tcp_tail(given: Values) -> Iterator[Cell]:
    data = options.padded_to_4(options.encode(options_of(given), TCP_OPTIONS))
    if len(data) > 40:
        raise ValueError(f"the options have {len(data)} bytes; at most 40 are possible")
    return _bytes_cell(data)


def _ipv6_options_tail(given: Values) -> Iterator[Cell]:
    """The options, padded to the size, or to a multiple of 8 bytes with the first two."""
    data = options.encode(options_of(given), IPV6_OPTIONS)
    smallest = (2 + len(data) + 7) // 8 * 8
    size = _fixed(given, "size") or smallest
    if size % 8 or not smallest <= size <= 2048:
        raise ValueError(f"size={size} should be a multiple of 8, from {smallest} to 2048 bytes")
    return _bytes_cell(data + options.ipv6_padding(size - 2 - len(data)))


def segments_of(given: Values) -> tuple[Number, ...]:
    """The segments of a routing header in the order in which they are visited; none if it has other
    data."""
    found = given.get("segments", ())
    return tuple(one for one in found if isinstance(one, Number)) if isinstance(found, tuple) else ()


def _is_srh(given: Values) -> bool:
    return "data" not in given


def _routing_tail(given: Values) -> Iterator[Cell]:
    """The segment list, the last segment first (RFC 8754 2), or the given data."""
    if ("segments" in given) == ("data" in given):
        raise ValueError("needs either segments=[…] or data=0x…")
    if _is_srh(given):
        return _segment_list(given)
    for name in ("last_entry", "flags", "tag", "tlvs"):
        if name in given:
            raise ValueError(f"{name} is a field of segment routing; it is not possible with data")
    data = given["data"]
    assert isinstance(data, bytes)
    if len(data) % 8 != 4 or len(data) > 2044:
        raise ValueError(
            f"data has {len(data)} bytes; 4, 12, 20 … 2044 are possible, as the header has a multiple of 8"
        )
    return _bytes_cell(data)


def _segment_list(given: Values) -> Iterator[Cell]:
    """The segments, and the TLVs behind them (RFC 8754 2.1)."""
    yield from (Cell("segments", 128, one) for one in reversed(segments_of(given)))
    data = given.get("tlvs", b"")
    assert isinstance(data, bytes)
    if len(data) % 8:
        raise ValueError(f"tlvs has {len(data)} bytes; multiples of 8 are possible, as the header has one")
    yield from _bytes_cell(data)


def _routing(place: Place, given: Values) -> dict[str, int]:
    """Segments left: after the destination address, which may itself be the first segment. Otherwise
    the list is a reduced one (RFC 8754 4.1.1)."""
    segments = segments_of(given)
    is_first = bool(segments) and place.destination == segments[0]
    return {
        "next_header": protocol(place),
        "length": place.size // 8 - 1,
        "segments_left": len(segments) - is_first,
        "last_entry": max(len(segments) - 1, 0),
    }


def _extension(place: Place, _: Values) -> dict[str, int]:
    return {"next_header": protocol(place), "length": place.size // 8 - 1}


def _authentication_tail(given: Values) -> Iterator[Cell]:
    """The value that a receiver with the key would check, of a size that suits IPv4 and IPv6 (RFC 4302 2.6)."""
    data = given.get("icv", bytes(12))
    assert isinstance(data, bytes)
    if len(data) % 8 != 4 or len(data) > 1012:
        raise ValueError(f"icv has {len(data)} bytes; 4, 12, 20 … 1012 are possible, as the header has a multiple of 8")
    return _bytes_cell(data)


def _payload_tail(given: Values) -> Iterator[Cell]:
    data = given.get("data")
    if not isinstance(data, bytes) or not data:
        raise ValueError("needs data=0x…")
    return _bytes_cell(data + bytes(len(data) % 2))  # the tag begins at an even byte: checksums cover it


def _authentication(place: Place, _: Values) -> dict[str, int]:
    return {"next_header": protocol(place), "length": place.size // 4 - 2}


def _mobility(place: Place, _: Values) -> dict[str, int]:
    """Nothing may follow it, so what does is bytes that every node passes on (RFC 8200 4.7)."""
    return {"next_header": NO_NEXT_HEADER, "length": place.size // 8 - 1}


def _icmp(place: Place, _: Values) -> dict[str, int]:
    return {"type": ECHO_REQUEST if place.version == 4 else ECHO_REQUEST_V6}


def _when(*names: str) -> Callable[[Values], bool]:
    """Whether any of these is given."""
    return lambda given: any(name in given for name in names)


_has_gre_checksum = _when("checksum", "reserved1")


def _gre(place: Place, given: Values) -> dict[str, int]:
    flags = {f"_{name}_present": int(name in given) for name in ("key", "sequence")}
    return {"type": ethertype(place), "_checksum_present": int(_has_gre_checksum(given)), **flags}


_GTPU_FLAGS = {"e": ("next_extension", "extensions"), "s": ("sequence",), "pn": ("n_pdu",)}
"""Each is 1 where one of these fields is given (TS 29.281 5.1)."""


def _has_gtpu_options(given: Values) -> bool:
    """The optional four bytes stand there if any of them is used."""
    return any(_fixed(given, flag) or _when(*names)(given) for flag, names in _GTPU_FLAGS.items())


def _gtpu(place: Place, given: Values) -> dict[str, int]:
    """The length counts the optional four bytes, and the extension headers (TS 29.281 5.1)."""
    return {
        "length": place.rest - 8,
        "sequence": 0,
        "n_pdu": 0,
        "next_extension": 0,
        **{flag: int(_when(*names)(given)) for flag, names in _GTPU_FLAGS.items()},
    }


def _gtpu_tail(given: Values) -> Iterator[Cell]:
    """Extension headers: each begins with its size in units of four bytes, and ends with the type of the next one (TS
    29.281 5.2.1)."""
    data = given.get("extensions", b"")
    assert isinstance(data, bytes)
    at, more = 0, _fixed(given, "next_extension") if _fixed(given, "e") != 0 else 0
    while more and at < len(data) and data[at]:
        at += 4 * data[at]
        more = data[at - 1] if at <= len(data) else 1
    if more or at != len(data):
        raise ValueError(
            "extensions have to be a chain: e=1, next_extension is the type of the first, each begins with its size in"
            " units of four bytes and ends with the type of the next, the last one with 0"
        )
    return _bytes_cell(data)


def _has_teid(given: Values) -> bool:
    flag = _fixed(given, "t")
    return "teid" in given if flag is None else bool(flag)


def _gtpc(place: Place, given: Values) -> dict[str, int]:
    """The length does not count the first four bytes (TS 29.274 5.5.1)."""
    return {"length": place.rest - 4, "t": int(_has_teid(given)), "teid": 0}


_LINK = ("mpls", "ipv4", "ipv6", "arp", "ppp", "pause", "pfc", "ptp", "payload")
_IN_IP = ("udp", "tcp", "icmp", "gre", "ipv4", "ipv6", "mpls", "ah", "esp", "payload")
_IN_IPV4 = (*_IN_IP, "igmp")
_IN_IPV6 = (*_IN_IP, "eth", "routing", "dest_options", "fragment", "mobility")
_UDP_PORTS = {**TUNNEL_PORTS, "gtpc": GTPC_PORT, "ptp": PTP_EVENT_PORT}
_OPTIONS_NOTE = "none"


def _ipv6_options_header(name: str, title: str) -> HeaderKind:
    fields = (
        _type("next_header", 8),
        _length("length", 8),
        _Size("size", 0, note="as the options need, at least 8"),
        Field("options", 0, kinds=IPV6_OPTIONS, note=_OPTIONS_NOTE),
    )
    return HeaderKind(name, title, fields, _IN_IPV6, _extension, _ipv6_options_tail)


KINDS: Mapping[str, HeaderKind] = {
    kind.name: kind
    for kind in (
        HeaderKind(
            "eth",
            "Ethernet (IEEE 802.3)",
            (
                Field("destination", 48, MAC, note="the DUT's; in a tunnel 02:00:00:00:00:02"),
                Field("source", 48, MAC, note="the port's; in a tunnel 02:00:00:00:00:01"),
                _type("type", 16, "by the next header after all tags; in the last header 0x88b5", HEX),
            ),
            ("vlan", *_LINK),
            lambda place, _: {"type": ethertype(place)},
        ),
        HeaderKind(
            "vlan",
            "VLAN tag (IEEE 802.1Q, 802.1ad)",
            (
                Field("type", 16, HEX, 0x8100, Role.SHAPE),
                Field("pcp", 3, default=0),
                Field("dei", 1, default=0),
                Field("id", 12, default=1),
            ),
            ("vlan", *_LINK),
        ),
        HeaderKind(
            "arp",
            "ARP (RFC 826), behind which the tag stands",
            (
                Field("hardware", 16, default=1, role=Role.SHAPE),
                Field("protocol", 16, HEX, ETHERTYPES["ipv4"], Role.SHAPE),
                Field("hardware_length", 8, default=6, role=Role.SHAPE),
                Field("protocol_length", 8, default=4, role=Role.SHAPE),
                Field("operation", 16, default=1),
                Field("sender_mac", 48, MAC, 0),
                Field("sender_ip", 32, IPV4, 0),
                Field("target_mac", 48, MAC, 0),
                Field("target_ip", 32, IPV4, 0),
            ),
            (),
        ),
        HeaderKind(
            "pause",
            "Pause (IEEE 802.3 31B), behind which the tag stands",
            (Field("opcode", 16, HEX, 1), Field("time", 16, default=0)),
            (),
        ),
        HeaderKind(
            "pfc",
            "Priority-based Flow Control (IEEE 802.1Q 36), behind which the tag stands",
            (
                Field("opcode", 16, HEX, 0x0101),
                Field("enable", 16, HEX, 0),
                *(Field(f"time{priority}", 16, default=0) for priority in range(8)),
            ),
            (),
        ),
        HeaderKind(
            "ptp",
            "PTP (IEEE 1588-2008 13), a Sync message, behind which the tag stands",
            (
                Field("transport", 4, HEX, 0),
                Field("type", 4, HEX, 0, Role.TYPE),
                _reserved(4),
                Field("version", 4, default=2, role=Role.SHAPE),
                _length("length", 16),
                Field("domain", 8, default=0),
                _reserved(8),
                Field("flags", 16, HEX, 0),
                Field("correction", 64, default=0),
                _reserved(32),
                Field("clock", 64, HEX, 0),
                Field("port", 16, default=1),
                Field("sequence", 16, default=0),
                Field("control", 8, default=0),
                Field("interval", 8, default=0),
                Field("seconds", 48, default=0),
                Field("nanoseconds", 32, default=0),
            ),
            (),
            lambda place, _: {"length": place.size},
        ),
        HeaderKind(
            "ppp",
            "PPP in HDLC-like framing (RFC 1662)",
            (
                Field("address", 8, HEX, 0xFF),
                Field("control", 8, HEX, 3),
                _type("protocol", 16, "by the next header; in the last header 0x0021", HEX),
            ),
            ("ipv4", "ipv6", "mpls", "payload"),
            lambda place, _: {"protocol": PPP_PROTOCOLS.get(place.next or "", PPP_PROTOCOLS["ipv4"])},
        ),
        HeaderKind(
            "payload",
            "bytes of one's own, before the tag",
            (_Bytes("data", 0, note="required"),),
            (),
            tail=_payload_tail,
        ),
        HeaderKind(
            "mpls",
            "MPLS label (RFC 3032)",
            (
                Field("label", 20, default=16),
                Field("tc", 3, default=0),
                _type("s", 1, "1 at the bottom of the stack, else 0"),
                Field("ttl", 8, default=TTL),
            ),
            ("mpls", "ipv4", "ipv6", "eth", "payload"),
            lambda place, _: {"s": int(place.next != "mpls")},
        ),
        HeaderKind(
            "ipv4",
            "IPv4 (RFC 791)",
            (
                Field("version", 4, default=4, role=Role.SHAPE),
                _length("ihl", 4),
                Field("dscp", 6, default=0),
                Field("ecn", 2, default=0),
                _length("length", 16),
                Field("id", 16, default=0),
                Field("reserved", 1, default=0),
                Field("df", 1, default=1),
                Field("mf", 1, default=0),
                Field("offset", 13, default=0),
                Field("ttl", 8, default=TTL),
                _type("protocol", 8, "by the next header; in the last header 253"),
                _checksum(),
                Field("source", 32, IPV4, note="the test setup's; in a tunnel 198.18.0.2"),
                Field("destination", 32, IPV4, note="the test setup's; in a tunnel 198.19.0.2"),
                Field("options", 0, kinds=IPV4_OPTIONS, note=_OPTIONS_NOTE),
            ),
            _IN_IPV4,
            lambda place, _: {"ihl": place.size // 4, "length": place.rest, "protocol": protocol(place)},
            _ipv4_tail,
            covered="header",
        ),
        HeaderKind(
            "ipv6",
            "IPv6 (RFC 8200)",
            (
                Field("version", 4, default=6, role=Role.SHAPE),
                Field("dscp", 6, default=0),
                Field("ecn", 2, default=0),
                Field("flow_label", 20, HEX, 0),
                _length("length", 16),
                _type("next_header", 8, "by the next header; in the last header 253"),
                Field("hop_limit", 8, default=TTL),
                Field("source", 128, IPV6, note="the test setup's; in a tunnel 2001:2::2"),
                Field("destination", 128, IPV6, note="the test setup's; in a tunnel 2001:2:0:1::2"),
            ),
            (*_IN_IPV6, "hop_by_hop"),
            lambda place, _: {"length": place.rest - 40, "next_header": protocol(place)},
        ),
        _ipv6_options_header("hop_by_hop", "Hop-by-Hop Options (RFC 8200 4.3)"),
        HeaderKind(
            "routing",
            "Routing (RFC 8200 4.4; Segment Routing, RFC 8754)",
            (
                _type("next_header", 8),
                _length("length", 8),
                Field("type", 8, default=SEGMENT_ROUTING, role=Role.SHAPE),
                Field("segments_left", 8, role=Role.SHAPE, note="the segments that follow the destination address"),
                Field("last_entry", 8, role=Role.LENGTH, note="computed", present=_is_srh),
                Field("flags", 8, HEX, 0, present=_is_srh),
                Field("tag", 16, HEX, 0, present=_is_srh),
                _Segments("segments", 0, note="required, or `data`"),
                _Bytes("tlvs", 0, note="none; bytes behind the segments"),
                _Bytes("data", 0, note="none; instead of `segments`: the bytes after `segments_left`"),
            ),
            _IN_IPV6,
            _routing,
            _routing_tail,
        ),
        _ipv6_options_header("dest_options", "Destination Options (RFC 8200 4.6)"),
        HeaderKind(
            "fragment",
            "Fragment (RFC 8200 4.5)",
            (
                _type("next_header", 8),
                _reserved(8),
                Field("offset", 13, default=0),
                _reserved(2),
                Field("more", 1, default=0),
                Field("id", 32, HEX, 0),
            ),
            _IN_IPV6,
            lambda place, _: {"next_header": protocol(place)},
        ),
        HeaderKind(
            "ah",
            "Authentication (RFC 4302)",
            (
                _type("next_header", 8),
                _length("length", 8),
                _reserved(16),
                Field("spi", 32, default=256),
                Field("sequence", 32, default=1),
                _Bytes("icv", 0, note="12 zero bytes"),
            ),
            _IN_IPV6,
            _authentication,
            _authentication_tail,
        ),
        HeaderKind(
            "esp",
            "Encapsulating Security Payload (RFC 4303), of which the rest is encrypted",
            (Field("spi", 32, default=256), Field("sequence", 32, default=1)),
            (),
        ),
        HeaderKind(
            "mobility",
            "Mobility (RFC 6275 6.1), a Binding Refresh Request",
            (
                _type("next_header", 8, "59: nothing follows"),
                _length("length", 8),
                Field("type", 8, default=0),
                _reserved(8),
                _checksum(),
                _reserved(16),
            ),
            (),
            _mobility,
            covered="pseudo and header",
        ),
        HeaderKind(
            "udp",
            "UDP (RFC 768)",
            (
                Field("source", 16, default=SOURCE_PORT),
                _type("destination", 16, "7; before another header its port"),
                _length("length", 16),
                _checksum("computed; over IPv4 before `vxlan` and `gtpu` 0", "zero"),
            ),
            ("vxlan", "gtpu", "mpls", "gre", "gtpc", "ptp", "payload"),
            lambda place, _: {
                "destination": _UDP_PORTS.get(place.next or "", DESTINATION_PORT),
                "length": place.rest,
            },
        ),
        HeaderKind(
            "tcp",
            "TCP (RFC 9293)",
            (
                Field("source", 16, default=SOURCE_PORT),
                Field("destination", 16, default=DESTINATION_PORT),
                Field("seq", 32, default=0),
                Field("ack", 32, default=0),
                _length("data_offset", 4),
                Field("reserved", 3, default=0),
                Field("flags", 9, FLAGS, values.FLAGS.read("A")),
                Field("window", 16, default=65535),
                _checksum(),
                Field("urgent", 16, default=0),
                Field("options", 0, kinds=TCP_OPTIONS, note=_OPTIONS_NOTE),
            ),
            ("payload",),
            lambda place, _: {"data_offset": place.size // 4},
            _tcp_tail,
        ),
        HeaderKind(
            "icmp",
            "ICMP (RFC 792), over IPv6 ICMPv6 (RFC 4443)",
            (
                Field("type", 8, note="8 over IPv4, 128 over IPv6: echo request"),
                Field("code", 8, default=0),
                _checksum(),
                Field("id", 16, default=0),
                Field("sequence", 16, default=0),
            ),
            ("payload",),
            _icmp,
        ),
        HeaderKind(
            "igmp",
            "IGMPv1 (RFC 1112), behind which the tag stands",
            (
                Field("version", 4, default=1, role=Role.SHAPE),
                Field("type", 4, default=1),
                Field("unused", 8, default=0),
                _checksum(),
                Field("group", 32, IPV4, 0),
            ),
            (),
            covered="rest",
        ),
        HeaderKind(
            "gre",
            "GRE (RFC 2784, RFC 2890)",
            (
                Field("_checksum_present", 1),
                _reserved(1),
                Field("_key_present", 1),
                Field("_sequence_present", 1),
                Field("reserved0", 9, default=0),
                Field("version", 3, default=0, role=Role.SHAPE),
                _type("type", 16, "by the next header; in the last header 0x88b5", HEX),
                _checksum("absent", "absent", _has_gre_checksum),
                Field("reserved1", 16, note="absent; 0 behind the checksum", present=_has_gre_checksum),
                Field("key", 32, note="absent", present=_when("key")),
                Field("sequence", 32, note="absent", present=_when("sequence")),
            ),
            ("ipv4", "ipv6", "eth", "mpls", "ppp"),
            _gre,
            covered="rest",
        ),
        HeaderKind(
            "vxlan",
            "VXLAN (RFC 7348)",
            (
                Field("flags", 8, HEX, 8),
                Field("reserved0", 24, default=0),
                Field("vni", 24, default=1),
                Field("reserved1", 8, default=0),
                _Size("trailer", 0, note="0 bytes behind the inner packet, such as an FCS of the inner frame"),
            ),
            ("eth",),
            is_last_possible=False,
        ),
        HeaderKind(
            "gtpu",
            "GTP-U (3GPP TS 29.281)",
            (
                Field("version", 3, default=1, role=Role.SHAPE),
                Field("pt", 1, default=1, role=Role.SHAPE),
                Field("reserved", 1, default=0),
                Field("e", 1, role=Role.SHAPE, note="1 with an extension header, else 0"),
                Field("s", 1, role=Role.SHAPE, note="1 with `sequence`, else 0"),
                Field("pn", 1, role=Role.SHAPE, note="1 with `n_pdu`, else 0"),
                Field("type", 8, default=255, role=Role.TYPE),
                _length("length", 16),
                Field("teid", 32, default=1),
                Field("sequence", 16, note="absent", present=_has_gtpu_options),
                Field("n_pdu", 8, note="absent", present=_has_gtpu_options),
                Field("next_extension", 8, HEX, role=Role.SHAPE, note="absent", present=_has_gtpu_options),
                _Bytes("extensions", 0, note="none; extension headers, the first of type `next_extension`"),
            ),
            ("ipv4", "ipv6"),
            _gtpu,
            _gtpu_tail,
        ),
        HeaderKind(
            "gtpc",
            "GTPv2-C (3GPP TS 29.274), behind which the tag stands",
            (
                Field("version", 3, default=2, role=Role.SHAPE),
                Field("p", 1, default=0),
                Field("t", 1, role=Role.SHAPE, note="1 with `teid`, else 0"),
                Field("spare1", 3, default=0),
                Field("type", 8, default=1),
                _length("length", 16),
                Field("teid", 32, note="absent", present=_has_teid),
                Field("sequence", 24, default=0),
                Field("spare2", 8, default=0),
            ),
            (),
            _gtpc,
        ),
    )
}


def table() -> str:
    """Every header with its fields, and what may follow it, in Markdown."""
    lines = ["| header, field | bits | default |\n", "| --- | --- | --- |\n"]
    for kind in KINDS.values():
        lines.append(f"| **`{kind.name}`** {kind.title} | | |\n")
        for field in map(kind.field, kind.known):
            default = field.note if field.default is None else field.form.write(field.default, field.bits)
            lines.append(f"| `{field.name}` | {field.bits or ''} | {default} |\n".replace("|  |", "| |"))
    lines += ["\n", "| header | may be followed by |\n", "| --- | --- |\n"]
    carried = dict.fromkeys(kind.carries for kind in KINDS.values())
    for each in carried:
        names = [kind.name for kind in KINDS.values() if kind.carries == each]
        lines.append(f"| {_listed(names)} | {_listed(each) or 'none'} |\n")
    return "".join(lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
