# SPDX-License-Identifier: Apache-2.0
"""The headers of a flow as text for :mod:`dutperf.frames`.

A field that a flow leaves out has the model's default, not dutperf's: the frames are those that another generator would
send. Lengths, types and checksums that are not given are computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from random import Random

from dutperf.otg.model import Message, Rejected, chosen, name_of

MOST_VALUES = 65_536
"""Of a field, which repeat."""
_PATTERN_DEFAULT = "value"


@dataclass(frozen=True)
class Part:
    """A field of ours that has bits of a field of the model."""

    name: str
    shift: int = 0
    bits: int = 0
    """0: all of it."""


@dataclass(frozen=True)
class ModelField:
    """A field of the model."""

    parts: tuple[Part, ...]
    default: str | None = None
    """None: computed, or the port's."""
    form: Callable[[object], int] = int  # type: ignore[assignment]
    show: Callable[[int], str] = str

    def text(self, number: int, part: Part) -> str:
        """A number, or the part's bits of it, as our field has it."""
        return self.show(number) if not part.bits else str(number >> part.shift & (1 << part.bits) - 1)


@dataclass(frozen=True)
class ModelHeader:
    """A header of the model."""

    ours: str
    fields: Mapping[str, ModelField]
    within: str = ""
    """The member that has the fields; empty: the header itself."""
    more: Callable[[Message, str], Mapping[str, str]] = field(default=lambda _header, _where: {})
    """Fields that are no pattern."""
    also: tuple[str, ...] = ()
    """Their names in the model."""


def _mac(text: object) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", str(text)):
        raise ValueError(f"{text!r} is no MAC address")
    return int(str(text).replace(":", ""), 16)


def _shown_mac(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))


def _ipv4(text: object) -> int:
    return int(IPv4Address(str(text)))


def _ipv6(text: object) -> int:
    return int(IPv6Address(str(text)))


def _number(name: str, default: str | None = None) -> ModelField:
    return ModelField((Part(name),), default)


def _of_mac(name: str, default: str | None) -> ModelField:
    return ModelField((Part(name),), default, _mac, _shown_mac)


def _of_ipv4(name: str, default: str | None) -> ModelField:
    return ModelField((Part(name),), default, _ipv4, lambda number: str(IPv4Address(number)))


def _of_ipv6(name: str, default: str | None) -> ModelField:
    return ModelField((Part(name),), default, _ipv6, lambda number: str(IPv6Address(number)))


_CLASS = ModelField((Part("dscp", 2, 6), Part("ecn", 0, 2)))
"""The byte of DSCP and ECN (RFC 2474, RFC 3168)."""


def _priority(header: Message, where: str) -> Mapping[str, str]:
    """The byte of DSCP and ECN of IPv4."""
    if not header.HasField("priority"):
        return {}
    priority, where = header.priority, f"{where}.priority"
    if chosen(priority, "dscp") == "raw":
        return _values(priority.raw, _CLASS, f"{where}.raw")
    dscp = priority.dscp
    found: dict[str, str] = {}
    for name, ours in (("phb", "dscp"), ("ecn", "ecn")):
        if dscp.HasField(name):
            found |= _values(getattr(dscp, name), _number(ours), f"{where}.dscp.{name}")
    return found


_FLAGS = {
    "ecn_ns": 8,
    "ecn_cwr": 7,
    "ecn_echo": 6,
    "ctl_urg": 5,
    "ctl_ack": 4,
    "ctl_psh": 3,
    "ctl_rst": 2,
    "ctl_syn": 1,
    "ctl_fin": 0,
}
"""Bits of the flags of TCP (RFC 9293, RFC 3540)."""


def _flags(header: Message, where: str) -> Mapping[str, str]:
    flags = 0
    for name, bit in _FLAGS.items():
        if header.HasField(name):
            [text] = _values(getattr(header, name), _number(name), f"{where}.{name}").values()
            if text not in ("0", "1"):
                raise Rejected(f"{where}.{name}: a flag that varies is not covered")
            flags |= int(text) << bit
    return {"flags": str(flags)}


def _gre_checksum(header: Message, where: str) -> Mapping[str, str]:
    if not header.HasField("checksum_present"):
        return {}
    [present] = _values(header.checksum_present, _number("checksum"), f"{where}.checksum_present").values()
    return {"checksum": "yes"} if present == "1" else {}


def _custom(header: Message, where: str) -> Mapping[str, str]:
    text = header.bytes.lower().removeprefix("0x").replace(":", "").replace(" ", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise Rejected(f"{where}.bytes: {header.bytes[:40]!r} are no bytes in hexadecimal digits") from None
    if not data:
        raise Rejected(f"{where}.bytes: there are none")
    return {"data": f"0x{data.hex()}"}


_INNER_FCS = {"trailer": "4"}
"""Other generators leave room for an FCS of the inner frame."""
HEADERS: Mapping[str, ModelHeader] = {
    "ethernet": ModelHeader(
        "eth",
        {
            "dst": _of_mac("destination", "00:00:00:00:00:00"),
            "src": _of_mac("source", "00:00:00:00:00:00"),
            "ether_type": _number("type"),
        },
    ),
    "vlan": ModelHeader(
        "vlan",
        {
            "priority": _number("pcp", "0"),
            "cfi": _number("dei", "0"),
            "id": _number("id", "0"),
            "tpid": _number("type"),
        },
    ),
    "mpls": ModelHeader(
        "mpls",
        {
            "label": _number("label", "16"),
            "traffic_class": _number("tc", "0"),
            "bottom_of_stack": _number("s"),
            "time_to_live": _number("ttl", "64"),
        },
    ),
    "ipv4": ModelHeader(
        "ipv4",
        {
            "version": _number("version"),
            "header_length": _number("ihl"),
            "total_length": _number("length"),
            "identification": _number("id", "0"),
            "reserved": _number("reserved", "0"),
            "dont_fragment": _number("df", "0"),
            "more_fragments": _number("mf", "0"),
            "fragment_offset": _number("offset", "0"),
            "time_to_live": _number("ttl", "64"),
            "protocol": _number("protocol"),
            "header_checksum": _number("checksum"),
            "src": _of_ipv4("source", "0.0.0.0"),
            "dst": _of_ipv4("destination", "0.0.0.0"),
        },
        more=_priority,
        also=("priority",),
    ),
    "ipv6": ModelHeader(
        "ipv6",
        {
            "version": _number("version"),
            "traffic_class": _CLASS,
            "flow_label": _number("flow_label", "0"),
            "payload_length": _number("length"),
            "next_header": _number("next_header"),
            "hop_limit": _number("hop_limit", "64"),
            "src": _of_ipv6("source", "::"),
            "dst": _of_ipv6("destination", "::"),
        },
    ),
    "udp": ModelHeader(
        "udp",
        {
            "src_port": _number("source", "0"),
            "dst_port": _number("destination", "0"),
            "length": _number("length"),
            "checksum": _number("checksum"),
        },
    ),
    "tcp": ModelHeader(
        "tcp",
        {
            "src_port": _number("source", "0"),
            "dst_port": _number("destination", "0"),
            "seq_num": _number("seq", "0"),
            "ack_num": _number("ack", "0"),
            "data_offset": _number("data_offset"),
            "window": _number("window", "0"),
            "checksum": _number("checksum"),
        },
        more=_flags,
        also=tuple(_FLAGS),
    ),
    "icmp": ModelHeader(
        "icmp",
        {
            "type": _number("type", "8"),
            "code": _number("code", "0"),
            "checksum": _number("checksum"),
            "identifier": _number("id", "0"),
            "sequence_number": _number("sequence", "0"),
        },
        within="echo",
    ),
    "icmpv6": ModelHeader(
        "icmp",
        {
            "type": _number("type", "128"),
            "code": _number("code", "0"),
            "checksum": _number("checksum"),
            "identifier": _number("id", "0"),
            "sequence_number": _number("sequence", "0"),
        },
        within="echo",
    ),
    "vxlan": ModelHeader(
        "vxlan", {"flags": _number("flags", "8"), "vni": _number("vni", "0")}, more=lambda _header, _where: _INNER_FCS
    ),
    "gre": ModelHeader(
        "gre",
        {"version": _number("version"), "protocol": _number("type")},
        more=_gre_checksum,
        also=("checksum_present",),
    ),
    "gtpv1": ModelHeader(
        "gtpu",
        {
            "version": _number("version"),
            "protocol_type": _number("pt"),
            "message_type": _number("type", "0"),
            "message_length": _number("length"),
            "teid": _number("teid", "0"),
        },
    ),
    "arp": ModelHeader(
        "arp",
        {
            "hardware_type": _number("hardware"),
            "protocol_type": _number("protocol"),
            "hardware_length": _number("hardware_length"),
            "protocol_length": _number("protocol_length"),
            "operation": _number("operation", "1"),
            "sender_hardware_addr": _of_mac("sender_mac", "00:00:00:00:00:00"),
            "sender_protocol_addr": _of_ipv4("sender_ip", "0.0.0.0"),
            "target_hardware_addr": _of_mac("target_mac", "00:00:00:00:00:00"),
            "target_protocol_addr": _of_ipv4("target_ip", "0.0.0.0"),
        },
    ),
    "custom": ModelHeader("payload", {}, more=_custom, also=("bytes",)),
}
"""Headers that are covered, by their names in the model."""
LAST = {
    "ethernet": ("ether_type", "0xffff"),
    "vlan": ("tpid", "0xffff"),
    "ipv4": ("protocol", "61"),
    "ipv6": ("next_header", "59"),
}
"""What the model says of the next header where none follows."""


@dataclass(frozen=True)
class OpenFields:
    """Fields of a flow between devices that follow from them, where it leaves them out."""

    addresses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of the first header of a kind: defaults in place of the model's."""

    def default(self, header: str, name: str, usual: str | None) -> str | None:
        """The default of a field; empty: the port's, or the DUT's."""
        return self.addresses.get(header, {}).get(name, usual)


def stack_text(packet: Message, where: str, ends: OpenFields) -> str:
    """The headers of ``packet``, the model's, as text.

    Raises:
        Rejected: a header or a value that is not covered.
    """
    names = [chosen(header, "custom") for header in packet]
    if names[:1] != ["ethernet"]:
        raise Rejected(f"{where}.packet: frames begin with ethernet" + (f", not {names[0]}" if names else ""))
    seen: set[str] = set()
    made: list[tuple[str, dict[str, str]]] = []
    for number, (name, message) in enumerate(zip(names, packet, strict=True)):
        place = f"{where}.packet[{number}].{name}"
        kind = HEADERS.get(name)
        if kind is None:
            raise Rejected(f"{place}: this header is not covered")
        given = getattr(message, name)
        given = getattr(given, kind.within) if kind.within else given
        of_ends = ends if name not in seen else OpenFields()
        seen.add(name)
        fields = dict(_fields(given, name, kind, place, of_ends))
        last, text = LAST.get(name, ("", ""))
        follows = names[number + 1] if number + 1 < len(names) else ""
        if last and follows in ("", "custom") and not given.HasField(last):
            fields.setdefault(kind.fields[last].parts[0].name, text)
        made.append((kind.ours, fields))
    _announce_tags(made)
    return "/".join(
        ours + (f"({','.join(f'{one}={value}' for one, value in fields.items())})" if fields else "")
        for ours, fields in made
    )


def _announce_tags(made: list[tuple[str, dict[str, str]]]) -> None:
    """In the model each header of the link has the type of what follows it; in ours a tag has its own, and Ethernet
    that of what follows all tags."""
    for first, (ours, fields) in enumerate(made):
        if ours != "eth":
            continue
        tags = [fields]
        for name, of_tag in made[first + 1 :]:
            if name != "vlan":
                break
            tags.append(of_tag)
        types = [one.pop("type", None) for one in tags]
        for one, announced in zip([*tags[1:], fields], types, strict=True):
            if announced is not None:
                one["type"] = announced


def _fields(given: Message, name: str, kind: ModelHeader, where: str, ends: OpenFields) -> Iterator[tuple[str, str]]:
    for key, of_model in kind.fields.items():
        found = _values(getattr(given, key), of_model, f"{where}.{key}") if given.HasField(key) else {}
        default = ends.default(name, key, of_model.default)
        if found:
            yield from found.items()
        elif default:
            yield of_model.parts[0].name, default
    yield from kind.more(given, where).items()


def _values(pattern: Message, of_model: ModelField, where: str) -> Mapping[str, str]:
    """The text of each of our fields that has bits of this one; none where the model says that they are computed.

    Raises:
        Rejected: a pattern that is not covered, or has too many values.
    """
    choice = chosen(pattern, _PATTERN_DEFAULT)
    if choice in ("auto", "generated"):
        if choice == "generated" and pattern.HasField("generated") and name_of(pattern, "generated") == "bad":
            raise Rejected(f"{where}: a bad checksum is not covered; give it as custom")
        return {}
    try:
        if choice in ("increment", "decrement") and not of_model.parts[0].bits:
            return {of_model.parts[0].name: _counter(getattr(pattern, choice), choice, of_model)}
        numbers = _numbers(pattern, choice, of_model)
    except (ValueError, ArithmeticError) as error:
        raise Rejected(f"{where}.{choice}: {error}") from None
    if not numbers:
        raise Rejected(f"{where}.{choice}: there are no values")
    if len(numbers) > MOST_VALUES:
        raise Rejected(f"{where}.{choice}: {len(numbers):,} values are too many; at most {MOST_VALUES:,} are possible")
    return {part.name: _listed([of_model.text(one, part) for one in numbers]) for part in of_model.parts}


def _listed(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else f"list({','.join(texts)})"


def _counter(counter: Message, choice: str, of_model: ModelField) -> str:
    start, step, count = _counted(counter, of_model)
    if count == 1 or step == 0:
        return of_model.show(start)
    return f"{choice}({of_model.show(start)},step={step},count={count})"


def _counted(counter: Message, of_model: ModelField) -> tuple[int, int, int]:
    start = of_model.form(counter.start) if counter.HasField("start") else 0
    step = of_model.form(counter.step) if counter.HasField("step") else 1
    return start, step, counter.count if counter.HasField("count") else 1


def _numbers(pattern: Message, choice: str, of_model: ModelField) -> list[int]:
    """The values of a pattern, in their order."""
    if choice == "values":
        return [of_model.form(one) for one in pattern.values]
    if choice == "random":
        return _random(pattern.random, of_model)
    if choice in ("increment", "decrement"):
        start, step, count = _counted(getattr(pattern, choice), of_model)
        sign = 1 if choice == "increment" else -1
        return [start + sign * step * number for number in range(min(count, MOST_VALUES + 1))]
    if choice == "custom":
        return [int(pattern.custom)]
    return [of_model.form(pattern.value)] if pattern.HasField("value") else [0]


def _random(pattern: Message, of_model: ModelField) -> list[int]:
    """``count`` values of the range, which repeat; the same for the same seed."""
    first = of_model.form(pattern.min) if pattern.HasField("min") else 0
    if not pattern.HasField("max"):
        raise ValueError("max is missing")
    last = of_model.form(pattern.max)
    if last < first:
        raise ValueError(f"min is above max ({of_model.show(first)}, {of_model.show(last)})")
    draw = Random(pattern.seed if pattern.HasField("seed") else 1)
    count = pattern.count if pattern.HasField("count") else 1
    return [draw.randint(first, last) for _ in range(min(count, MOST_VALUES + 1))]
