# SPDX-License-Identifier: Apache-2.0
"""The headers of a flow as those of :mod:`dutperf.frames`.

A field that a flow leaves out has the model's default, not dutperf's: the frames are those that another generator would
send. Lengths, types and checksums that are not given are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from dutperf.frames import KINDS, FrameError, Stack
from dutperf.otg import nested
from dutperf.otg.model import Message, Rejected, chosen
from dutperf.otg.nested import TRAFFIC_CLASS
from dutperf.otg.patterns import FieldText, ModelField, ipv4_field, ipv6_field, mac_field, number_field, texts


@dataclass(frozen=True)
class ModelHeader:
    ours: str
    fields: Mapping[str, ModelField]
    within: str = ""
    """The member that has the fields; empty: the header itself."""
    more: Callable[[Message, str], Mapping[str, FieldText]] = field(default=lambda _header, _where: {})
    """Fields that are no pattern."""
    also: tuple[str, ...] = ()
    """Their names in the model."""
    then: ModelHeader | None = None
    """The rest of it, where ours are two."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are covered."""
        return (*self.fields, *self.also, *(self.then.names if self.then is not None else ()))


def _inner_fcs(_header: Message, where: str) -> Mapping[str, FieldText]:
    """Other generators leave room for an FCS of the inner frame."""
    return {"trailer": FieldText("4", where)}


def _echo(request: str) -> ModelHeader:
    return ModelHeader(
        "icmp",
        {
            "type": number_field("type", request),
            "code": number_field("code", "0"),
            "checksum": number_field("checksum"),
            "identifier": number_field("id", "0"),
            "sequence_number": number_field("sequence", "0"),
        },
        within="echo",
    )


_ETHERNET = {
    "dst": mac_field("destination", "00:00:00:00:00:00"),
    "src": mac_field("source", "00:00:00:00:00:00"),
    "ether_type": number_field("type"),
}
_PAUSE = {**_ETHERNET, "dst": mac_field("destination", "01:80:c2:00:00:01")}
HEADERS: Mapping[str, ModelHeader] = {
    "ethernet": ModelHeader("eth", _ETHERNET),
    "vlan": ModelHeader(
        "vlan",
        {
            "priority": number_field("pcp", "0"),
            "cfi": number_field("dei", "0"),
            "id": number_field("id", "0"),
            "tpid": number_field("type"),
        },
    ),
    "mpls": ModelHeader(
        "mpls",
        {
            "label": number_field("label", "16"),
            "traffic_class": number_field("tc", "0"),
            "bottom_of_stack": number_field("s"),
            "time_to_live": number_field("ttl", "64"),
        },
    ),
    "ipv4": ModelHeader(
        "ipv4",
        {
            "version": number_field("version"),
            "header_length": number_field("ihl"),
            "total_length": number_field("length"),
            "identification": number_field("id", "0"),
            "reserved": number_field("reserved", "0"),
            "dont_fragment": number_field("df", "0"),
            "more_fragments": number_field("mf", "0"),
            "fragment_offset": number_field("offset", "0"),
            "time_to_live": number_field("ttl", "64"),
            "protocol": number_field("protocol"),
            "header_checksum": number_field("checksum"),
            "src": ipv4_field("source", "0.0.0.0"),
            "dst": ipv4_field("destination", "0.0.0.0"),
        },
        more=nested.ipv4_parts,
        also=("priority", "options"),
    ),
    "ipv6": ModelHeader(
        "ipv6",
        {
            "version": number_field("version"),
            "traffic_class": TRAFFIC_CLASS,
            "flow_label": number_field("flow_label", "0"),
            "payload_length": number_field("length"),
            "next_header": number_field("next_header"),
            "hop_limit": number_field("hop_limit", "64"),
            "src": ipv6_field("source", "::"),
            "dst": ipv6_field("destination", "::"),
        },
        more=nested.ipv6_parts,
        also=("dst_usids",),
    ),
    "ipv6_extension_header": ModelHeader(
        "routing",
        {"next_header": number_field("next_header"), "hdr_ext_len": number_field("length")},
        more=nested.routing_parts,
        also=("routing",),
    ),
    "udp": ModelHeader(
        "udp",
        {
            "src_port": number_field("source", "0"),
            "dst_port": number_field("destination", "0"),
            "length": number_field("length"),
            "checksum": number_field("checksum"),
        },
    ),
    "tcp": ModelHeader(
        "tcp",
        {
            "src_port": number_field("source", "0"),
            "dst_port": number_field("destination", "0"),
            "seq_num": number_field("seq", "0"),
            "ack_num": number_field("ack", "0"),
            "data_offset": number_field("data_offset"),
            "window": number_field("window", "0"),
            "checksum": number_field("checksum"),
        },
        more=nested.tcp_flags,
        also=tuple(part.name for part in nested.TCP_FLAGS),
    ),
    "icmp": _echo("8"),
    "icmpv6": _echo("128"),
    "igmpv1": ModelHeader(
        "igmp",
        {
            "version": number_field("version", "1"),
            "type": number_field("type", "1"),
            "unused": number_field("unused", "0"),
            "checksum": number_field("checksum"),
            "group_address": ipv4_field("group", "0.0.0.0"),
        },
    ),
    "vxlan": ModelHeader(
        "vxlan",
        {
            "flags": number_field("flags", "8"),
            "reserved0": number_field("reserved0", "0"),
            "vni": number_field("vni", "0"),
            "reserved1": number_field("reserved1", "0"),
        },
        more=_inner_fcs,
    ),
    "gre": ModelHeader(
        "gre",
        {
            "reserved0": number_field("reserved0", "0"),
            "version": number_field("version"),
            "protocol": number_field("type"),
        },
        more=nested.gre_parts,
        also=("checksum_present", "checksum", "reserved1"),
    ),
    "gtpv1": ModelHeader(
        "gtpu",
        {
            "version": number_field("version"),
            "protocol_type": number_field("pt"),
            "reserved": number_field("reserved", "0"),
            "message_type": number_field("type", "0"),
            "message_length": number_field("length"),
            "teid": number_field("teid", "0"),
        },
        more=nested.gtpv1_parts,
        also=(
            *("e_flag", "s_flag", "pn_flag", "squence_number", "n_pdu_number"),
            *("next_extension_header_type", "extension_headers"),
        ),
    ),
    "gtpv2": ModelHeader(
        "gtpc",
        {
            "version": number_field("version", "2"),
            "piggybacking_flag": number_field("p", "0"),
            "spare1": number_field("spare1", "0"),
            "message_type": number_field("type", "0"),
            "message_length": number_field("length"),
            "sequence_number": number_field("sequence", "0"),
            "spare2": number_field("spare2", "0"),
        },
        more=nested.gtpv2_parts,
        also=("teid_flag", "teid"),
    ),
    "ppp": ModelHeader(
        "ppp",
        {
            "address": number_field("address", "255"),
            "control": number_field("control", "3"),
            "protocol_type": number_field("protocol"),
        },
    ),
    "ethernetpause": ModelHeader(
        "eth",
        _PAUSE,
        then=ModelHeader("pause", {"control_op_code": number_field("opcode", "1"), "time": number_field("time", "0")}),
    ),
    "pfcpause": ModelHeader(
        "eth",
        _PAUSE,
        then=ModelHeader(
            "pfc",
            {
                "control_op_code": number_field("opcode", "257"),
                "class_enable_vector": number_field("enable", "0"),
                **{f"pause_class_{priority}": number_field(f"time{priority}", "0") for priority in range(8)},
            },
        ),
    ),
    "arp": ModelHeader(
        "arp",
        {
            "hardware_type": number_field("hardware"),
            "protocol_type": number_field("protocol"),
            "hardware_length": number_field("hardware_length"),
            "protocol_length": number_field("protocol_length"),
            "operation": number_field("operation", "1"),
            "sender_hardware_addr": mac_field("sender_mac", "00:00:00:00:00:00"),
            "sender_protocol_addr": ipv4_field("sender_ip", "0.0.0.0"),
            "target_hardware_addr": mac_field("target_mac", "00:00:00:00:00:00"),
            "target_protocol_addr": ipv4_field("target_ip", "0.0.0.0"),
        },
    ),
    "custom": ModelHeader("payload", {}, more=nested.custom, also=("bytes",)),
}
"""Headers that are covered, by their names in the model."""
LAST = {
    "ethernet": ("ether_type", "0xffff"),
    "vlan": ("tpid", "0xffff"),
    "ipv4": ("protocol", "61"),
    "ipv6": ("next_header", "59"),
    "ipv6_extension_header": ("next_header", "59"),
    "ppp": ("protocol_type", "33"),
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


@dataclass(frozen=True)
class _Made:
    """A header of ours."""

    name: str
    of_model: str
    place: str
    fields: dict[str, FieldText]

    def __str__(self) -> str:
        told = ",".join(f"{name}={one.text}" for name, one in self.fields.items())
        return f"{self.name}({told})" if told else self.name


def stack_of(packet: Message, where: str, ends: OpenFields) -> Stack:
    """The headers of ``packet``, the model's, which is at ``where``. Raises Rejected: a header or a value that is not
    possible; the text names its place in the configuration."""
    made = list(_made(packet, where, ends))
    if not made or made[0].name != "eth":
        raise Rejected(f"{where}: frames begin with ethernet" + (f", not {made[0].of_model}" if made else ""))
    _check_order(made)
    _announce_tags(made)
    try:
        return Stack.parse("/".join(map(str, made)))
    except FrameError as error:
        raise Rejected(_placed(error, made, where)) from None


def _made(packet: Message, where: str, ends: OpenFields) -> Iterator[_Made]:
    names = [chosen(header, "custom") for header in packet]
    seen: set[str] = set()
    for number, (name, message) in enumerate(zip(names, packet, strict=True)):
        place = f"{where}[{number}].{name}"
        kind: ModelHeader | None = HEADERS.get(name)
        if kind is None:
            raise Rejected(f"{place}: this header is not covered")
        given = getattr(message, name)
        of_ends = ends if name not in seen else OpenFields()
        seen.add(name)
        is_last = number + 1 == len(names) or names[number + 1] == "custom"
        while kind is not None:
            place_of_fields, members = (
                (f"{place}.{kind.within}", getattr(given, kind.within)) if kind.within else (place, given)
            )
            fields = dict(_fields(members, name, kind, place_of_fields, of_ends))
            last, text = LAST.get(name, ("", ""))
            if last and is_last and not given.HasField(last):
                fields.setdefault(kind.fields[last].parts[0].name, FieldText(text, f"{place}.{last}"))
            yield _Made(kind.ours, name, place, fields)
            kind = kind.then


def _check_order(made: list[_Made]) -> None:
    for before, after in pairwise(made):
        carried = KINDS[before.name].carries
        if after.name not in carried:
            names = ", ".join(name for name, kind in HEADERS.items() if kind.ours in carried)
            raise Rejected(
                f"{after.place}: cannot follow {before.of_model}"
                + (f"; it carries {names}" if names else ", which carries none")
            )


def _placed(error: FrameError, made: list[_Made], where: str) -> str:
    """An error of ours with the place of the field in the configuration."""
    if error.header is None:
        return f"{where}: {error.message}"
    header = made[error.header - 1]
    given = header.fields.get(error.field or "")
    if given is None:
        return f"{header.place}: {error.message}"
    return f"{given.place}: {error.message.removeprefix(error.field or '').lstrip(': ')}"


def _announce_tags(made: list[_Made]) -> None:
    """In the model each header of the link has the type of what follows it; in ours a tag has its own, and Ethernet
    that of what follows all tags."""
    for first, header in enumerate(made):
        if header.name != "eth":
            continue
        tags = [header.fields]
        for one in made[first + 1 :]:
            if one.name != "vlan":
                break
            tags.append(one.fields)
        types = [fields.pop("type", None) for fields in tags]
        for fields, announced in zip([*tags[1:], header.fields], types, strict=True):
            if announced is not None:
                fields["type"] = announced


def _fields(
    given: Message, name: str, kind: ModelHeader, where: str, ends: OpenFields
) -> Iterator[tuple[str, FieldText]]:
    for key, of_model in kind.fields.items():
        found = texts(getattr(given, key), of_model, f"{where}.{key}") if given.HasField(key) else {}
        default = ends.default(name, key, of_model.default)
        if found:
            yield from found.items()
        elif default:
            yield of_model.parts[0].name, FieldText(default, f"{where}.{key}")
    yield from kind.more(given, where).items()
