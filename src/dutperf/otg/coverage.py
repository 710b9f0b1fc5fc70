# SPDX-License-Identifier: Apache-2.0
"""What of the model is covered. Whatever else a message has is refused by its name; nothing is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from dutperf.otg.headers import HEADERS
from dutperf.otg.model import SPECIFICATION, Message, Rejected, members_of, messages, name_of

_COVERED = {
    "Config": "ports layer1 captures devices flows",
    "Port": "location name",
    "Layer1": "port_names speed promiscuous mtu name",
    "Capture": "port_names overwrite packet_size format name",
    "Device": "ethernets ipv4_loopbacks ipv6_loopbacks name",
    "DeviceEthernet": "connection ipv4_addresses ipv6_addresses mac mtu vlans name",
    "EthernetConnection": "choice port_name",
    "DeviceVlan": "tpid priority id name",
    "DeviceIpv4": "gateway gateway_mac address prefix name",
    "DeviceIpv4GatewayMAC": "choice auto value",
    "DeviceIpv6": "gateway gateway_mac address prefix name",
    "DeviceIpv6GatewayMAC": "choice auto value",
    "DeviceIpv4Loopback": "eth_name address name",
    "DeviceIpv6Loopback": "eth_name address name",
    "Flow": "tx_rx packet egress_packet payload size rate duration metrics name",
    "FlowTxRx": "choice port device",
    "FlowPort": "tx_name rx_name rx_names",
    "FlowRouter": "mode tx_names rx_names bidirectional",
    "FlowSize": "choice fixed increment random weight_pairs",
    "FlowSizeIncrement": "start end step",
    "FlowSizeRandom": "min max",
    "FlowSizeWeightPairs": "choice predefined custom",
    "FlowSizeWeightPairsCustom": "size weight",
    "FlowPayload": "choice fixed",
    "FlowPayloadFixed": "pattern repeat",
    "FlowRate": "choice pps bps kbps mbps gbps percentage",
    "FlowDuration": "choice fixed_packets fixed_seconds burst continuous",
    "FlowFixedPackets": "packets gap delay",
    "FlowFixedSeconds": "seconds gap delay",
    "FlowContinuous": "gap delay",
    "FlowBurst": "bursts packets gap inter_burst_gap",
    "FlowDurationInterBurstGap": "choice bytes nanoseconds microseconds",
    "FlowDelay": "choice bytes nanoseconds microseconds",
    "FlowMetrics": "enable loss timestamps latency predefined_metric_tags",
    "FlowPredefinedTags": "rx_name",
    "FlowLatencyMetrics": "enable mode",
    "FlowHeader": f"choice {' '.join(HEADERS)}",
    "FlowIpv4Priority": "choice raw tos dscp",
    "FlowIpv4Tos": "precedence delay throughput reliability monetary unused",
    "FlowIpv4Dscp": "phb ecn",
    "FlowIpv4Options": "choice custom timestamp",
    "FlowIpv4OptionsCustom": "type length value",
    "FlowIpv4OptionsCustomType": "copied_flag option_class option_number",
    "FlowIpv4OptionsCustomLength": "choice auto value",
    "FlowIpv4OptionsTimestamp": "pointer overflow format",
    "FlowIpv4OptionsTimestampPointer": "choice value",
    "FlowIpv4OptionsTimestampFormat": "choice timestamps address_and_timestamps prespecified_address_and_timestamps",
    "FlowIpv4OptionsTimestampFormatTimestamps": "timestamp",
    "FlowIpv4OptionsTimestampFormatAddressAndTimestamps": "address timestamp",
    "FlowIpv6UsidDst": "locator locator_length usids",
    "FlowIpv6Routing": "choice segment_routing segment_routing_usid",
    "FlowIpv6SegmentRouting": "segments_left last_entry flags tag segment_list pad_tlv",
    "FlowIpv6SegmentRoutingFlags": "protected oam alert",
    "FlowIpv6SegmentRoutingSegment": "segment",
    "FlowIpv6SegmentRoutingUsid": "segments_left last_entry flags tag segment_list pad_tlv",
    "FlowIpv6SegmentRoutingUsidSegment": "locator locator_length usids",
    "FlowIpv6SegmentRoutinguSidFlags": "oam",
    "FlowIpv6SRHPadTlv": "type length",
    "FlowGtpExtension": "extension_length contents next_extension_header",
    "FlowIcmp": "choice echo",
    "FlowIcmpv6": "choice echo",
    "ControlState": "choice port protocol traffic",
    "StateTraffic": "choice flow_transmit",
    "StateTrafficFlowTransmit": "flow_names state",
    "StatePort": "choice capture link",
    "StatePortCapture": "port_names state",
    "StatePortLink": "port_names state",
    "StateProtocol": "choice all",
    "StateProtocolAll": "state",
    "ControlAction": "choice protocol",
    "ActionProtocol": "choice ipv4 ipv6",
    "ActionProtocolIpv4": "choice ping",
    "ActionProtocolIpv4Ping": "requests",
    "ActionProtocolIpv4PingRequest": "src_name dst_ip",
    "ActionProtocolIpv6": "choice ping",
    "ActionProtocolIpv6Ping": "requests",
    "ActionProtocolIpv6PingRequest": "src_name dst_ip",
    "MetricsRequest": "choice port flow",
    "PortMetricsRequest": "port_names column_names",
    "FlowMetricsRequest": "flow_names metric_names tagged_metrics",
    "FlowTaggedMetricsFilter": "include include_empty_metrics metric_names filters",
    "FlowMetricTagFilter": "name values",
    "StatesRequest": "choice ipv4_neighbors ipv6_neighbors",
    "Neighborsv4StatesRequest": "ethernet_names",
    "Neighborsv6StatesRequest": "ethernet_names",
    "CaptureRequest": "port_name",
    "ConfigAppend": "config_append_list",
    "ConfigAppendResources": "flows",
    "ConfigDelete": "config_delete_list",
    "ConfigDeleteResources": "flows",
    "ConfigUpdate": "choice flows",
    "FlowsUpdate": "property_names flows",
}
"""Fields of each message but those of headers, which :data:`dutperf.otg.headers.HEADERS` has."""
_ONLY: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("FlowRouter", "bidirectional"): (False,),
    ("Capture", "overwrite"): (True,),
    ("Layer1", "promiscuous"): (True,),
}
"""Values that these fields may have: the others are not covered."""
_PATTERNS = ("choice", "value", "values", "increment", "decrement", "random", "auto", "generated", "custom")
_TAGS = ("name", "offset", "length")
_TAGGED = "egress_packet"
"""Where fields may have ``metric_tags``: in frames as they arrive."""
_COUNTERS = ("start", "step", "count", "min", "max", "seed")
WITHOUT_EFFECT = {
    ("Layer1", "media"): "the interface's own medium applies",
    ("Layer1", "ieee_media_defaults"): "the interface's own settings apply",
    ("Layer1", "auto_negotiate"): "the interface's own settings apply",
    ("Layer1", "auto_negotiation"): "the interface's own settings apply",
}
"""Fields that a warning answers, and why."""


def _of_headers() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, kind in HEADERS.items():
        header = messages.FlowHeader.DESCRIPTOR.fields_by_name[name].message_type
        if kind.within:
            header = header.fields_by_name[kind.within].message_type
        yield header.name, kind.names


COVERED = {name: tuple(fields.split()) for name, fields in _COVERED.items()} | dict(_of_headers())


def covered_of(message: str) -> tuple[str, ...]:
    """The fields of a message that are covered; none of one that is not."""
    if message.startswith("PatternFlow"):
        if message.endswith("MetricTag"):
            return _TAGS
        return _COUNTERS if message.endswith(("Counter", "Random")) else _PATTERNS
    return COVERED.get(message, ())


def check(message: Message) -> list[str]:
    """The warnings about what a message has without effect. Raises Rejected: it has something that is not covered; each
    is named with its place."""
    warnings: list[str] = []
    refused = dict.fromkeys(_uncovered(message, "", warnings))  # a choice and its member have one place
    if refused:
        raise Rejected(*(f"{place} is not covered" for place in refused), code=501)
    return warnings


def _uncovered(message: Message, where: str, warnings: list[str]) -> Iterator[str]:
    name = message.DESCRIPTOR.name
    covered = covered_of(name)
    for field, value in message.ListFields():
        place = f"{where}{field.name}"
        reason = WITHOUT_EFFECT.get((name, field.name))
        if field.name == "choice":
            yield from _chosen(message, covered, where)
        elif reason is not None:
            warnings.append(f"{place} has no effect: {reason}")
        elif field.name not in covered and not (field.name == "metric_tags" and _TAGGED in where):
            yield place
        else:
            yield from _refused_value(name, field, value, place)
    for field_name, place, one in members_of(message):
        if field_name in covered or field_name == "metric_tags":
            yield from _uncovered(one, f"{where}{place}.", warnings)


def _unknown(field: Any, value: Any) -> list[str]:
    """Values of an enumeration that the model does not have: any number, and protobuf's for one that says nothing."""
    if field.enum_type is None:
        return []
    known = {number: one.name for number, one in field.enum_type.values_by_number.items()}
    numbers = value if field.is_repeated else (value,)
    return [known.get(number, str(number)) for number in numbers if number == 0 or number not in known]


def _refused_value(message: str, field: Any, value: Any, place: str) -> Iterator[str]:
    if unknown := _unknown(field, value):
        yield f"{place} with {unknown[0]}"
    elif isinstance(value, float) and not isfinite(value):
        yield f"{place} with {value}"
    elif value not in _ONLY.get((message, field.name), (value,)):
        yield f"{place} with {str(value).lower()}"


def _chosen(message: Message, covered: Sequence[str], where: str) -> Iterator[str]:
    """A choice without its member, which then has its defaults; members of what was not chosen."""
    if unknown := _unknown(message.DESCRIPTOR.fields_by_name["choice"], message.choice):
        yield f"{where}choice with {unknown[0]}"
        return
    wanted = name_of(message, "choice")
    if wanted in message.DESCRIPTOR.fields_by_name and wanted not in covered:
        yield f"{where}{wanted}"
    choices = {one.name for one in message.DESCRIPTOR.fields_by_name["choice"].enum_type.values}
    given = [field.name for field, _ in message.ListFields()]
    yield from (f"{where}{one} beside the choice {wanted}" for one in given if one in choices - {wanted})


def table() -> str:
    """What docs/otg.md shows: of each message its covered fields, those without effect, and the others."""
    lines = ["| message | covered | a warning says that it has no effect | refused |", "| --- | --- | --- | --- |"]
    for name, covered in COVERED.items():
        known = [
            field.name for field in messages.DESCRIPTOR.message_types_by_name[name].fields if field.name != "choice"
        ]
        ignored = [one for one in known if (name, one) in WITHOUT_EFFECT]
        refused = [one for one in known if one not in covered and one not in ignored]
        cells = (_listed(one for one in known if one in covered), _listed(ignored), _listed(refused))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    only = [f"{message}.{one} other than {str(value).lower()}" for (message, one), (value,) in _ONLY.items()]
    told = f"The model is that of snappi {SPECIFICATION}. Refused are also: {', '.join(only)}."
    return "\n".join([*lines, "", told]) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "–"
