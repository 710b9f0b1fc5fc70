# SPDX-License-Identifier: Apache-2.0
"""The headers of a test frame as those of the Open Traffic Generator API: the bytes of the frame are read header by
header, since a trial has nothing else of them.

Every field is given, so that no generator's default decides; only checksums that are right, and lengths inside VXLAN,
are left to the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any

from dutperf.frames.headers import ETHERTYPES, ICMP, ICMPV6, PROTOCOLS, TUNNEL_PORTS
from dutperf.model import MOST_VALUES, DescribedField, DescribedFrame
from dutperf.tester import TesterError

_PERIODS = (4093, 4091, 4079, 4073, 4057, 4051, 4049, 4027)
"""Primes: so many values of random fields repeat, and with several such fields their combinations do much later."""
_VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
_NAMES = {"eth": "ethernet", "gtpu": "gtpv1"}
"""Names of the model, where they differ from ours."""

Members = dict[str, Any]


class NotPossible(TesterError):
    """A trial needs what the API, or its metrics, do not have."""

    def __init__(self, what: str) -> None:
        super().__init__(f"an OTG server (engine.otg) cannot measure this: {what}", code="otg")


def _mac(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")


def _ipv4(number: int) -> str:
    return str(IPv4Address(number))


def _ipv6(number: int) -> str:
    return str(IPv6Address(number))


@dataclass(frozen=True)
class _Bits:
    """A field of the model."""

    name: str
    bits: int
    form: Callable[[int], Any] = int
    is_checksum: bool = False
    is_length: bool = False
    absent: int | None = None
    """The only value of a field that is not in the model, or that servers do not take."""


def _checksum(name: str = "checksum") -> _Bits:
    return _Bits(name, 16, is_checksum=True)


_ECHO = (_Bits("type", 8), _Bits("code", 8), _checksum(), _Bits("identifier", 16), _Bits("sequence_number", 16))
_FLAGS = ("ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst", "ctl_syn", "ctl_fin")
LAYOUTS: Mapping[str, tuple[_Bits, ...]] = {
    "ethernet": (_Bits("dst", 48, _mac), _Bits("src", 48, _mac), _Bits("ether_type", 16)),
    "vlan": (_Bits("priority", 3), _Bits("cfi", 1), _Bits("id", 12), _Bits("tpid", 16)),
    "mpls": (
        _Bits("label", 20),
        _Bits("traffic_class", 3),
        _Bits("bottom_of_stack", 1),
        _Bits("time_to_live", 8),
    ),
    "arp": (
        _Bits("hardware_type", 16),
        _Bits("protocol_type", 16),
        _Bits("hardware_length", 8),
        _Bits("protocol_length", 8),
        _Bits("operation", 16),
        _Bits("sender_hardware_addr", 48, _mac),
        _Bits("sender_protocol_addr", 32, _ipv4),
        _Bits("target_hardware_addr", 48, _mac),
        _Bits("target_protocol_addr", 32, _ipv4),
    ),
    "ipv4": (
        _Bits("version", 4),
        _Bits("header_length", 4),
        _Bits("priority", 8),
        _Bits("total_length", 16, is_length=True),
        _Bits("identification", 16),
        _Bits("reserved", 1),
        _Bits("dont_fragment", 1),
        _Bits("more_fragments", 1),
        _Bits("fragment_offset", 13),
        _Bits("time_to_live", 8),
        _Bits("protocol", 8),
        _checksum("header_checksum"),
        _Bits("src", 32, _ipv4),
        _Bits("dst", 32, _ipv4),
    ),
    "ipv6": (
        _Bits("version", 4),
        _Bits("traffic_class", 8),
        _Bits("flow_label", 20),
        _Bits("payload_length", 16, is_length=True),
        _Bits("next_header", 8),
        _Bits("hop_limit", 8),
        _Bits("src", 128, _ipv6),
        _Bits("dst", 128, _ipv6),
    ),
    "udp": (_Bits("src_port", 16), _Bits("dst_port", 16), _Bits("length", 16, is_length=True), _checksum()),
    "tcp": (
        _Bits("src_port", 16),
        _Bits("dst_port", 16),
        _Bits("seq_num", 32),
        _Bits("ack_num", 32),
        _Bits("data_offset", 4),
        _Bits("reserved", 3, absent=0),
        *(_Bits(name, 1) for name in _FLAGS),
        _Bits("window", 16),
        _checksum(),
        _Bits("urgent", 16, absent=0),
    ),
    "icmp": _ECHO,
    "icmpv6": _ECHO,
    "vxlan": (_Bits("flags", 8), _Bits("reserved0", 24, absent=0), _Bits("vni", 24), _Bits("reserved1", 8, absent=0)),
    "gre": (_Bits("checksum_present", 1), _Bits("reserved0", 12, absent=0), _Bits("version", 3), _Bits("protocol", 16)),
    "gtpv1": (
        _Bits("version", 3),
        _Bits("protocol_type", 1),
        _Bits("reserved", 1, absent=0),
        _Bits("e_flag", 1, absent=0),
        _Bits("s_flag", 1, absent=0),
        _Bits("pn_flag", 1, absent=0),
        _Bits("message_type", 8),
        _Bits("message_length", 16),
        _Bits("teid", 32),
    ),
}
"""Fields of the model's headers in the order of the wire. ``tpid`` of a tag and ``ether_type`` are what follows."""
_ECHOES = ("icmp", "icmpv6")
_BY_TYPE = {number: _NAMES.get(name, name) for name, number in ETHERTYPES.items()} | dict.fromkeys(_VLAN_TYPES, "vlan")
_BY_PROTOCOL = {number: _NAMES.get(name, name) for name, number in PROTOCOLS.items()} | {
    ICMP: "icmp",
    ICMPV6: "icmpv6",
}
_BY_PORT = {number: _NAMES.get(name, name) for name, number in TUNNEL_PORTS.items()}
_BY_VERSION = {4: "ipv4", 6: "ipv6"}
_GRE_CHECKSUM = 32
"""Bits of GRE's checksum and what is reserved beside it, where it has one."""


def headers_of(frame: DescribedFrame, own_mac: str, dut_mac: str, seed: str = "") -> list[Members]:
    """The headers of ``frame`` in the model's JSON. ``own_mac`` and ``dut_mac`` are where the frame leaves them open;
    ``seed``: of random fields, of which a few thousand values repeat. Raises NotPossible: a header or a field that the
    model does not have."""
    found = [one.members() for one in _walk(_Reader(frame, seed))]
    link = found[0]["ethernet"]
    if frame.source_mac == "port":
        link["src"] = _fixed(own_mac)
    if frame.destination_mac != "given":
        link["dst"] = _fixed(dut_mac)
    return found


def _fixed(value: Any) -> Members:
    return {"choice": "value", "value": value}


@dataclass(frozen=True)
class _Header:
    name: str
    numbers: Mapping[str, int]
    """The bits of its fields, of those that vary the first ones."""
    fields: Members

    def members(self) -> Members:
        own: Members = {"choice": "echo", "echo": self.fields} if self.name in _ECHOES else self.fields
        return {"choice": self.name, self.name: own}


class _Reader:
    """What of a frame is not read yet."""

    def __init__(self, frame: DescribedFrame, seed: str) -> None:
        self._frame, self._seed = frame, seed
        self._data = bytes.fromhex(frame.bytes)
        self._at = 0
        """In bits."""
        self._is_in_vxlan = False
        self._random = 0
        """Random fields so far."""

    @property
    def has_more(self) -> bool:
        return self._at < 8 * len(self._data)

    def next_nibble(self) -> int:
        """Of MPLS and GTP-U the version of the IP header that follows."""
        return self._data[self._at // 8] >> 4

    def skip(self, bits: int) -> None:
        self._at += bits

    def rest(self) -> str:
        """All that is left, in hexadecimal."""
        if any(one.bit >= self._at for one in self._frame.fields):
            raise NotPossible("bytes behind the headers that vary")
        left, self._at = self._data[self._at // 8 :], 8 * len(self._data)
        return left.hex()

    def header(self, name: str) -> _Header:
        layout = LAYOUTS[name]
        if self._at + sum(one.bits for one in layout) > 8 * len(self._data):
            raise NotPossible(f"a header {name} that is not whole")
        numbers: dict[str, int] = {}
        fields: Members = {}
        for one in layout:
            numbers[one.name] = number = self._number(one.bits)
            if one.absent is None:
                pattern = self._pattern(name, one, number)
                if pattern is not None:
                    fields[one.name] = pattern
            elif number != one.absent or self._varying(one.bits):
                raise NotPossible(f"{name} with another {one.name} than {one.absent}")
            self._at += one.bits
        self._is_in_vxlan |= name == "vxlan"
        return _Header(name, numbers, fields)

    def _number(self, bits: int) -> int:
        whole = int.from_bytes(self._data, "big")
        return whole >> (8 * len(self._data) - self._at - bits) & (1 << bits) - 1

    def _varying(self, bits: int) -> list[DescribedField]:
        return [one for one in self._frame.fields if one.bit < self._at + bits and one.bit + one.bits > self._at]

    def _pattern(self, name: str, of: _Bits, number: int) -> Members | None:
        """None: the server computes it."""
        if of.is_checksum:
            is_computed = any(8 * one.at == self._at for one in self._frame.checksums)
            return None if is_computed else {"choice": "custom", "custom": number}
        if of.is_length and self._is_in_vxlan:
            return None  # generators leave room for an FCS of the inner frame
        varying = self._varying(of.bits)
        made = self._varied(f"{name}.{of.name}", of, number, varying) if varying else _fixed(of.form(number))
        return {"choice": "raw", "raw": made} if (name, of.name) == ("ipv4", "priority") else made

    def _varied(self, place: str, of: _Bits, number: int, varying: list[DescribedField]) -> Members:
        [one] = varying[:1]
        shift = self._at + of.bits - one.bit - one.bits
        if len(varying) > 1 or one.bit < self._at or shift < 0:
            raise NotPossible(f"{place} in which several fields vary, or one that is longer")
        kept = number & ~((1 << one.bits) - 1 << shift)
        step = 0 if one.by == "flow" else one.steady_step
        if step:
            kind = "increment" if step > 0 else "decrement"
            counted = {"start": kept | int(one.first or 0) << shift, "step": abs(step) << shift}
            formed = {key: of.form(value) for key, value in counted.items()}
            return {"choice": kind, kind: {**formed, "count": one.period}}
        return {"choice": "values", "values": [of.form(kept | each << shift) for each in self._values(place, one)]}

    def _values(self, place: str, one: DescribedField) -> list[int]:
        """Its values in their order, after which they repeat."""
        frame = self._frame
        if one.mode in ("connection", "learned"):
            raise NotPossible("connections")
        if one.by == "flow" and frame.flow_order == "random":
            raise NotPossible("flows in random order")
        period = frame.flows if one.by == "flow" else one.period
        if one.mode == "random" and one.by == "frame":
            period = _PERIODS[self._random % len(_PERIODS)]
            self._random += 1
        if period > MOST_VALUES:
            raise NotPossible(f"{place} with more than {MOST_VALUES:,} values that repeat")
        if one.mode != "random":
            return [one.at(number) for number in range(period)]
        draw = Random(f"{self._seed} {one.bit}")
        return [int(one.first or 0) + draw.randrange(int(one.count or 1)) for _ in range(period)]


def _walk(reader: _Reader) -> Iterator[_Header]:
    name: str | None = "ethernet"
    while name is not None and reader.has_more:
        if name not in LAYOUTS:
            raise NotPossible(f"frames with a header {name}, which it does not have")
        header = reader.header(name)
        yield header
        _check_length(header)
        if name == "gre" and header.numbers["checksum_present"]:
            reader.skip(_GRE_CHECKSUM)
        name = _following(header, reader) if reader.has_more else None
    if reader.has_more:
        yield _Header("custom", {}, {"bytes": reader.rest()})


def _check_length(header: _Header) -> None:
    """Options are no header of their own here."""
    words = header.numbers.get("header_length" if header.name == "ipv4" else "data_offset", 5)
    if words != 5:
        raise NotPossible(f"{header.name} with options")


def _following(header: _Header, reader: _Reader) -> str | None:
    """The name of the next header; None: bytes that are no header follow."""
    numbers = header.numbers
    match header.name:
        case "ethernet" | "vlan":
            return _BY_TYPE.get(numbers["ether_type" if header.name == "ethernet" else "tpid"])
        case "mpls":
            return _BY_VERSION.get(reader.next_nibble(), "ethernet") if numbers["bottom_of_stack"] else "mpls"
        case "ipv4" | "ipv6":
            return _BY_PROTOCOL.get(numbers["protocol" if header.name == "ipv4" else "next_header"])
        case "udp":
            return _BY_PORT.get(numbers["dst_port"])
        case "vxlan":
            return "ethernet"
        case "gre":
            return _BY_TYPE.get(numbers["protocol"])
        case "gtpv1":
            return _BY_VERSION.get(reader.next_nibble())
        case _:
            return None
