# SPDX-License-Identifier: Apache-2.0
"""What a header of the model has beside plain fields: flags, options, extension headers, segments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address

from dutperf.otg.model import Message, Rejected, chosen, value_of
from dutperf.otg.patterns import (
    FieldText,
    ModelField,
    Part,
    fixed,
    ipv4_field,
    ipv6_field,
    listed,
    number_field,
    numbers_of,
    parted,
    texts,
    together,
)

Texts = Mapping[str, FieldText]
_DSCP_AND_ECN = (Part("dscp", 2, 6), Part("ecn", 0, 2))
TRAFFIC_CLASS = ModelField(_DSCP_AND_ECN)
"""The byte of DSCP and ECN (RFC 2474, RFC 3168)."""
_TOS = (
    Part("precedence", 5, 3),
    Part("delay", 4, 1),
    Part("throughput", 3, 1),
    Part("reliability", 2, 1),
    Part("monetary", 1, 1),
    Part("unused", 0, 1),
)
"""The same byte in RFC 1349."""
_NUMBER = number_field("number", "0")
TCP_FLAGS = (
    Part("ecn_ns", 8, 1),
    Part("ecn_cwr", 7, 1),
    Part("ecn_echo", 6, 1),
    Part("ctl_urg", 5, 1),
    Part("ctl_ack", 4, 1),
    Part("ctl_psh", 3, 1),
    Part("ctl_rst", 2, 1),
    Part("ctl_syn", 1, 1),
    Part("ctl_fin", 0, 1),
)
"""RFC 9293, RFC 3540."""
_SEGMENT_FLAGS = {
    "segment_routing": (Part("protected", 6, 1), Part("oam", 5, 1), Part("alert", 4, 1)),
    "segment_routing_usid": (Part("oam", 5, 1),),
}
"""Of the drafts before RFC 8754, which has none."""
_TIMESTAMPS = {"timestamps": 0, "address_and_timestamps": 1, "prespecified_address_and_timestamps": 3}
"""Formats of the timestamp option (RFC 791)."""


def hexadecimal(text: str, where: str) -> bytes:
    """Bytes that a client wrote. Raises Rejected: they are none."""
    try:
        return bytes.fromhex(text.lower().removeprefix("0x").replace(":", "").replace(" ", ""))
    except ValueError:
        raise Rejected(f"{where}: {text[:40]!r} are no bytes in hexadecimal digits") from None


def custom(header: Message, where: str) -> Texts:
    data = hexadecimal(header.bytes, f"{where}.bytes")
    if not data:
        raise Rejected(f"{where}.bytes: there are none")
    return {"data": FieldText(f"0x{data.hex()}", f"{where}.bytes")}


def ipv4_parts(header: Message, where: str) -> Texts:
    """The byte of DSCP and ECN, and the options."""
    found: dict[str, FieldText] = {}
    if header.HasField("priority"):
        found |= _priority(header.priority, f"{where}.priority")
    if header.options:
        each = [_ipv4_option(one, f"{where}.options[{number}]") for number, one in enumerate(header.options)]
        found["options"] = FieldText(f"[{','.join(each)}]", f"{where}.options")
    return found


def _priority(priority: Message, where: str) -> Texts:
    kind = chosen(priority, "dscp")
    if kind == "raw":
        return texts(priority.raw, TRAFFIC_CLASS, f"{where}.raw")
    if kind == "tos":
        return parted(together(priority.tos, _TOS, f"{where}.tos"), _DSCP_AND_ECN, f"{where}.tos")
    found: dict[str, FieldText] = {}
    for name, ours in (("phb", "dscp"), ("ecn", "ecn")):
        if priority.dscp.HasField(name):
            found |= texts(getattr(priority.dscp, name), number_field(ours), f"{where}.dscp.{name}")
    return found


def _ipv4_option(option: Message, where: str) -> str:
    kind = chosen(option, "router_alert")
    if kind == "router_alert":
        return "router_alert"
    if kind == "end_of_options":
        return "raw(0x00)"
    data = (_custom_option if kind == "custom" else _timestamp)(getattr(option, kind), f"{where}.{kind}")
    return f"raw(0x{data.hex()})"


def _custom_option(option: Message, where: str) -> bytes:
    kinds = set(
        together(
            option.type, (Part("copied_flag", 7, 1), Part("option_class", 5, 2), Part("option_number", 0, 5)), where
        )
    )
    if len(kinds) > 1:
        raise Rejected(f"{where}.type: it cannot vary: all frames have the same")
    value = hexadecimal(value_of(option, "value"), f"{where}.value")
    is_given = chosen(option.length, "auto") == "value"
    length = option.length.value if is_given else 2 + len(value)
    return bytes(kinds) + _bytes(length, 1, f"{where}.length") + value


def _timestamp(option: Message, where: str) -> bytes:
    pointer = option.pointer.value if chosen(option.pointer, "auto") == "value" else 5
    overflow = _within(fixed(option, "overflow", _NUMBER, where), 15, f"{where}.overflow")
    kind = chosen(option.format, "timestamps")
    entries = b"".join(
        _entry(one, f"{where}.format.{kind}[{number}]") for number, one in enumerate(getattr(option.format, kind))
    )
    # RFC 791: type, length, pointer, overflow and flag
    head = (68, 4 + len(entries), pointer, overflow << 4 | _TIMESTAMPS[kind])
    return b"".join(_bytes(one, 1, where) for one in head) + entries


def _entry(entry: Message, where: str) -> bytes:
    has_address = "address" in entry.DESCRIPTOR.fields_by_name
    address = fixed(entry, "address", ipv4_field("address", "0.0.0.0"), where) if has_address else 0
    time = fixed(entry, "timestamp", _NUMBER, where)
    return _bytes(address, 4, where)[: 4 * has_address] + _bytes(time, 4, f"{where}.timestamp")


def _within(number: int, most: int, where: str) -> int:
    if not 0 <= number <= most:
        raise Rejected(f"{where}: {number} is not 0 to {most}")
    return number


def _bytes(number: int, size: int, where: str) -> bytes:
    return _within(number, (1 << 8 * size) - 1, where).to_bytes(size, "big")


def tcp_flags(header: Message, where: str) -> Texts:
    """All flags are one field of ours."""
    return {"flags": FieldText(listed([str(one) for one in together(header, TCP_FLAGS, where)]), where)}


def gre_parts(header: Message, where: str) -> Texts:
    """The checksum, and what stands behind it: only with its flag."""
    if not _flag(header, "checksum_present", where):
        _refuse_absent(header, ("checksum", "reserved1"), where, "checksum_present")
        return {}
    found = {"checksum": FieldText("yes", f"{where}.checksum_present")}
    for name in ("checksum", "reserved1"):
        if header.HasField(name):
            found |= texts(getattr(header, name), number_field(name), f"{where}.{name}")
    return found


def gtpv1_parts(header: Message, where: str) -> Texts:
    """The flags, and the fields that stand in the frame with any of them (3GPP TS 29.281 5.1)."""
    flags = {"e_flag": "e", "s_flag": "s", "pn_flag": "pn"}
    behind = {"squence_number": "sequence", "n_pdu_number": "n_pdu", "next_extension_header_type": "next_extension"}
    if not any(_flag(header, name, where) for name in flags):
        _refuse_absent(header, behind, where, "e_flag, s_flag or pn_flag")
        if header.extension_headers:
            raise Rejected(f"{where}.extension_headers: they are in the frame with e_flag 1 only")
        return {}
    found: dict[str, FieldText] = {}
    for name, ours in (flags | behind).items():
        found[ours] = FieldText("0", f"{where}.{name}")
        if header.HasField(name):
            found |= texts(getattr(header, name), number_field(ours), f"{where}.{name}")
    place = f"{where}.extension_headers"
    each = [_gtp_extension(one, f"{place}[{number}]") for number, one in enumerate(header.extension_headers)]
    return found | ({"extensions": FieldText(f"0x{b''.join(each).hex()}", place)} if each else {})


def _gtp_extension(extension: Message, where: str) -> bytes:
    length = fixed(extension, "extension_length", _NUMBER, where)
    if length < 1:
        raise Rejected(f"{where}.extension_length: {length} is not possible: it counts itself, in units of 4 bytes")
    contents = fixed(extension, "contents", _NUMBER, where)
    following = fixed(extension, "next_extension_header", _NUMBER, where)
    return (
        _bytes(length, 1, f"{where}.extension_length")
        + _bytes(contents, 4 * length - 2, f"{where}.contents")
        + _bytes(following, 1, f"{where}.next_extension_header")
    )


def gtpv2_parts(header: Message, where: str) -> Texts:
    """The tunnel's identifier: only with its flag."""
    if not _flag(header, "teid_flag", where):
        _refuse_absent(header, ("teid",), where, "teid_flag")
        return {}
    given = texts(header.teid, number_field("teid"), f"{where}.teid") if header.HasField("teid") else {}
    return {"teid": FieldText("0", f"{where}.teid_flag"), **given}


def _flag(header: Message, name: str, where: str) -> bool:
    return bool(_within(fixed(header, name, _NUMBER, where), 1, f"{where}.{name}"))


def _refuse_absent(header: Message, names: Iterable[str], where: str, by: str) -> None:
    """A value other than 0 of a field that is not in the frame."""
    for name in names:
        given = header.HasField(name) and chosen(getattr(header, name)) != "generated"
        if given and any(numbers_of(getattr(header, name), _NUMBER, f"{where}.{name}")):
            raise Rejected(f"{where}.{name}: it is in the frame with {by} 1 only")


def ipv6_parts(header: Message, where: str) -> Texts:
    """The destination, where it is given as a container of micro segments."""
    if not header.HasField("dst_usids"):
        return {}
    if header.HasField("dst"):
        raise Rejected(f"{where}.dst_usids: it is given beside dst; only one of them is possible")
    place = f"{where}.dst_usids"
    return {"destination": FieldText(_container(header.dst_usids, place), place)}


def routing_parts(header: Message, where: str) -> Texts:
    """A segment routing header (RFC 8754)."""
    kind = chosen(header.routing, "segment_routing")
    given, where = getattr(header.routing, kind), f"{where}.routing.{kind}"
    segments = [_segment(one, kind, f"{where}.segment_list[{number}]") for number, one in enumerate(given.segment_list)]
    if not segments:
        raise Rejected(f"{where}.segment_list: at least one segment is needed")
    found = {
        "segments": FieldText(f"[{','.join(reversed(segments))}]", f"{where}.segment_list"),
        # not by the destination: the model says that it is always their number
        "segments_left": FieldText(str(len(segments)), f"{where}.segments_left"),
        "flags": FieldText(
            listed([str(one) for one in together(given.flags, _SEGMENT_FLAGS[kind], f"{where}.flags")]),
            f"{where}.flags",
        ),
    }
    for name in ("segments_left", "last_entry", "tag"):
        if given.HasField(name):
            found |= texts(getattr(given, name), number_field(name), f"{where}.{name}")
    if given.HasField("pad_tlv"):
        found["tlvs"] = FieldText(f"0x{_pad(given.pad_tlv, f'{where}.pad_tlv').hex()}", f"{where}.pad_tlv")
    return found


def _segment(segment: Message, kind: str, where: str) -> str:
    if kind == "segment_routing_usid":
        return _container(segment, where)
    if not segment.HasField("segment"):
        return "::"
    [given] = texts(segment.segment, ipv6_field("segment"), f"{where}.segment").values()
    return given.text


def _pad(tlv: Message, where: str) -> bytes:
    """RFC 8754 2.1.1.2; it is the only one behind the segments."""
    kind = fixed(tlv, "type", number_field("type", "4"), where)
    size = fixed(tlv, "length", number_field("length", "6"), where)
    if (2 + size) % 8:
        raise Rejected(f"{where}.length: {size} bytes do not end at a multiple of 8; 6, 14, 22 … do")
    return _bytes(kind, 1, f"{where}.type") + _bytes(size, 1, f"{where}.length") + bytes(size)


def _container(given: Message, where: str) -> str:
    """The address of a locator and micro segments (RFC 9800); without a locator they have to fill it."""
    length = _within(
        fixed(given, "locator_length", number_field("length", "32"), where), 112, f"{where}.locator_length"
    )
    locator = fixed(given, "locator", ipv6_field("locator", "::"), where)
    number, used = locator >> 128 - length, length
    for place, digits in enumerate(given.usids):
        found = re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]+)", digits)
        if found is None:
            raise Rejected(f"{where}.usids[{place}]: {digits[:40]!r} are no hexadecimal digits")
        used += 4 * len(found[1])
        number = number << 4 * len(found[1]) | int(found[1], 16)
    if used > 128 or (length == 0 and used < 128):
        raise Rejected(f"{where}.usids: locator and segments have {used} bits; an address has 128")
    return str(IPv6Address(number << 128 - used))
