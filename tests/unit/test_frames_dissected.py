# SPDX-License-Identifier: Apache-2.0
"""Frames as others read them: scapy and tshark agree on every field, length and checksum, and object to
what is wrong on purpose."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.gtp_v2 import GTPHeader as GTPv2
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.mpls import MPLS
from scapy.contrib.ptp_v2 import PTP
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    MIP6MH_BRR,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrSegmentRouting,
    in6_chksum,
)
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import HDLC, PPP
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Padding, Raw
from scapy.utils import checksum, wrpcap

import frame_bytes
from dutperf.frames import Stack
from frame_rows import ENDPOINTS, ROWS, Row

LAYERS: Mapping[str, tuple[type[Packet], ...]] = {
    "eth": (Ether,),
    "vlan": (Dot1Q, Dot1AD),
    "arp": (ARP,),
    "mpls": (MPLS,),
    "ipv4": (IP,),
    "ipv6": (IPv6,),
    "hop_by_hop": (IPv6ExtHdrHopByHop,),
    "routing": (IPv6ExtHdrSegmentRouting,),
    "dest_options": (IPv6ExtHdrDestOpt,),
    "fragment": (IPv6ExtHdrFragment,),
    "udp": (UDP,),
    "tcp": (TCP,),
    "icmp": (ICMP, ICMPv6EchoRequest),
    "gre": (GRE,),
    "vxlan": (VXLAN,),
    "gtpu": (GTP_U_Header,),
}
"""What scapy calls each header."""
READERS: Mapping[str, Callable[[Any], int]] = {
    "eth.destination": lambda one: int(one.dst.replace(":", ""), 16),
    "eth.source": lambda one: int(one.src.replace(":", ""), 16),
    "vlan.pcp": lambda one: one.prio,
    "vlan.dei": lambda one: one.dei,
    "vlan.id": lambda one: one.vlan,
    "arp.operation": lambda one: one.op,
    "arp.sender_mac": lambda one: int(one.hwsrc.replace(":", ""), 16),
    "arp.sender_ip": lambda one: int.from_bytes(bytes(map(int, one.psrc.split("."))), "big"),
    "arp.target_mac": lambda one: int(one.hwdst.replace(":", ""), 16),
    "arp.target_ip": lambda one: int.from_bytes(bytes(map(int, one.pdst.split("."))), "big"),
    "mpls.label": lambda one: one.label,
    "mpls.tc": lambda one: one.cos,
    "mpls.ttl": lambda one: one.ttl,
    "ipv4.dscp": lambda one: one.tos >> 2,
    "ipv4.ecn": lambda one: one.tos & 3,
    "ipv4.id": lambda one: one.id,
    "ipv4.reserved": lambda one: int(one.flags) >> 2 & 1,
    "ipv4.df": lambda one: int(one.flags) >> 1 & 1,
    "ipv4.mf": lambda one: int(one.flags) & 1,
    "ipv4.offset": lambda one: one.frag,
    "ipv4.ttl": lambda one: one.ttl,
    "ipv4.source": lambda one: int.from_bytes(bytes(map(int, one.src.split("."))), "big"),
    "ipv4.destination": lambda one: int.from_bytes(bytes(map(int, one.dst.split("."))), "big"),
    "ipv6.dscp": lambda one: one.tc >> 2,
    "ipv6.ecn": lambda one: one.tc & 3,
    "ipv6.flow_label": lambda one: one.fl,
    "ipv6.hop_limit": lambda one: one.hlim,
    "ipv6.source": lambda one: int.from_bytes(raw_field(one, "src"), "big"),
    "ipv6.destination": lambda one: int.from_bytes(raw_field(one, "dst"), "big"),
    "routing.flags": lambda one: raw_header(one)[5],
    "routing.tag": lambda one: one.tag,
    "fragment.offset": lambda one: one.offset,
    "fragment.more": lambda one: one.m,
    "fragment.id": lambda one: one.id,
    "udp.source": lambda one: one.sport,
    "tcp.source": lambda one: one.sport,
    "tcp.destination": lambda one: one.dport,
    "tcp.seq": lambda one: one.seq,
    "tcp.ack": lambda one: one.ack,
    "tcp.reserved": lambda one: one.reserved,
    "tcp.flags": lambda one: int(one.flags),
    "tcp.window": lambda one: one.window,
    "tcp.urgent": lambda one: one.urgptr,
    "icmp.type": lambda one: one.type,
    "icmp.code": lambda one: one.code,
    "icmp.id": lambda one: one.id,
    "icmp.sequence": lambda one: one.seq,
    "gre.reserved0": lambda one: one.strict_route_source << 8 | one.recursion_control << 5 | one.flags,
    "gre.reserved1": lambda one: one.offset,
    "gre.key": lambda one: one.key,
    "gre.sequence": lambda one: one.sequence_number,
    "vxlan.flags": lambda one: int(one.flags),
    "vxlan.reserved0": lambda one: int.from_bytes(raw_header(one)[1:4], "big"),
    "vxlan.vni": lambda one: one.vni,
    "vxlan.reserved1": lambda one: raw_header(one)[7],
    "gtpu.reserved": lambda one: one.reserved,
    "gtpu.teid": lambda one: one.teid,
    "gtpu.sequence": lambda one: one.seq,
    "gtpu.n_pdu": lambda one: one.npdu,
}
DEFAULTS: Mapping[str, int] = {
    "vlan.pcp": 0,
    "vlan.dei": 0,
    "vlan.id": 1,
    "arp.operation": 1,
    "arp.sender_mac": 0,
    "arp.sender_ip": 0,
    "arp.target_mac": 0,
    "arp.target_ip": 0,
    "mpls.label": 16,
    "mpls.tc": 0,
    "mpls.ttl": 10,
    "ipv4.dscp": 0,
    "ipv4.ecn": 0,
    "ipv4.id": 0,
    "ipv4.reserved": 0,
    "ipv4.df": 1,
    "ipv4.mf": 0,
    "ipv4.offset": 0,
    "ipv4.ttl": 10,
    "ipv6.dscp": 0,
    "ipv6.ecn": 0,
    "ipv6.flow_label": 0,
    "ipv6.hop_limit": 10,
    "routing.flags": 0,
    "routing.tag": 0,
    "fragment.offset": 0,
    "fragment.more": 0,
    "fragment.id": 0,
    "udp.source": 0xC020,
    "tcp.source": 0xC020,
    "tcp.destination": 7,
    "tcp.seq": 0,
    "tcp.ack": 0,
    "tcp.reserved": 0,
    "tcp.flags": 0x10,
    "tcp.window": 65535,
    "tcp.urgent": 0,
    "icmp.code": 0,
    "icmp.id": 0,
    "icmp.sequence": 0,
    "vxlan.flags": 8,
    "vxlan.reserved0": 0,
    "vxlan.vni": 1,
    "vxlan.reserved1": 0,
    "gre.reserved0": 0,
    "gtpu.reserved": 0,
    "gtpu.teid": 1,
}
"""docs/frames.md."""
COMPUTED = ("len", "plen", "length", "chksum", "cksum", "ihl", "dataofs", "nh", "proto", "type", "lastentry", "s")
"""Fields that scapy fills in itself if they are not there."""
TSHARK = (
    *("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"),
    *("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE"),
)
SUMS = tuple(f"{name}.checksum.status" for name in ("ip", "udp", "tcp", "icmp", "icmpv6", "gre"))
GOOD, UNVERIFIED, ABSENT = "1", "2", "3"
WARNING = 6291456
"""Severity of an expert item in Wireshark."""
NOT_READ_BY_SCAPY = {"ah", "esp", "mobility", "pause", "pfc", "ppp", "igmp", "gtpc", "ptp"}
"""It builds these headers, but does not read them behind IPv6, or what follows them, or with any other type."""
NOT_DISSECTED = ("offset=", "mf=1", "more=1")
"""Fragments: both programs wait for the others before they look further."""


READ_BY_SCAPY = [
    row
    for row in ROWS
    if not NOT_READ_BY_SCAPY & {header.name for header in Stack.parse(row.text).headers}
    and "extensions" not in row.text
]
AH_OF_UDP = AH(nh=17, payloadlen=4, spi=256, seq=1, icv=bytes(12))
PROTECTED = {
    "ipv4/ah/udp": IP(proto=51, flags="DF", id=0, ttl=10) / AH_OF_UDP / UDP(sport=0xC020, dport=7),
    "ipv6/ah/udp": IPv6(nh=51, hlim=10) / AH_OF_UDP / UDP(sport=0xC020, dport=7),
    "ipv6/ah(spi=7,sequence=8,icv=0x01020304)/esp": IPv6(nh=51, hlim=10)
    / AH(nh=50, payloadlen=2, spi=7, seq=8, icv=bytes((1, 2, 3, 4)))
    / ESP(spi=256, seq=1),
    "ipv4/esp(spi=7,sequence=8)": IP(proto=50, flags="DF", id=0, ttl=10) / ESP(spi=7, seq=8),
    "ipv6/mobility": IPv6(nh=135, hlim=10) / MIP6MH_BRR(nh=59, len=0),
}
"""What scapy builds, without addresses."""


def raw_header(layer: Packet) -> bytes:
    whole = bytes(layer)
    return whole[: len(whole) - len(layer.payload)]


def raw_field(layer: Packet, name: str) -> bytes:
    field, value = layer.getfield_and_val(name)
    return bytes(field.addfield(layer, b"", value))


def layers_of(packet: Packet) -> list[Packet]:
    """Without the payload."""
    found = []
    while packet and not isinstance(packet, Raw | Padding):
        found.append(packet)
        packet = packet.payload
    return found


def test_there_are_enough_rows() -> None:
    assert len(ROWS) >= 300
    assert len({row.text for row in ROWS}) == len(ROWS)
    assert {f"{row.header}.{row.field}" for row in READ_BY_SCAPY if row.header} == READERS.keys()


@pytest.mark.parametrize("row", READ_BY_SCAPY, ids=str)
def test_scapy_reads_every_header_and_field(row: Row) -> None:
    data = row.data
    assert len(data) == row.size - 4
    layers = layers_of(Ether(data))
    names = [header.name for header in Stack.parse(row.text).headers]
    if not any(part in row.text for part in NOT_DISSECTED):
        assert len(layers) == len(names)
    for name, layer in zip(names, layers, strict=False):
        assert isinstance(layer, LAYERS[name]), name
    assert not row.header or row.header in names[: len(layers)]
    given = Stack.parse(row.text)
    for header, layer in zip(given.headers, layers, strict=False):
        for key, expected in DEFAULTS.items():
            owner, _, field = key.partition(".")
            if owner == header.name and field not in header.given and not (owner == "icmp" and "type" in header.given):
                assert READERS[key](layer) == expected, key
    if row.header:
        assert READERS[f"{row.header}.{row.field}"](layers[names.index(row.header)]) == row.number


@pytest.mark.parametrize("row", READ_BY_SCAPY, ids=str)
def test_scapy_computes_the_same_lengths_types_and_checksums(row: Row) -> None:
    data = row.data
    packet = Ether(data)
    for layer in layers_of(packet):
        for name in COMPUTED:
            if can_compute(layer, name):
                layer.delfieldval(name)
    assert bytes(packet) == data


def can_compute(layer: Packet, name: str) -> bool:
    """Whether scapy gives that field a value from the rest of the packet."""
    if name not in layer.fields or layer.fields[name] is None:
        return False
    if name in ("nh", "proto", "type"):
        return name in layer.overloaded_fields and layer.overloaded_fields[name] == layer.fields[name]
    if name in ("chksum", "cksum"):
        return layer.fields[name] != 0
    return not isinstance(layer, ICMP) and name != "s"


@pytest.mark.parametrize("text", PROTECTED)
def test_authentication_esp_and_mobility_headers_are_as_scapy_builds_them(text: str) -> None:
    data = Row(text, 120).data
    expected = PROTECTED[text].copy()
    version = 4 if isinstance(expected, IP) else 6
    pair = ENDPOINTS.ipv4 if version == 4 else ENDPOINTS.ipv6
    assert pair is not None
    expected.src, expected.dst = map(str, pair)
    payload = data[14 + len(bytes(expected)) :]
    if MIP6MH_BRR in expected:  # its checksum is its own, not of what follows it
        expected.plen = len(data) - 14 - 40
        expected[MIP6MH_BRR].cksum = in6_chksum(135, expected, bytes(MIP6MH_BRR(nh=59, len=0, cksum=0)))
    if UDP in expected:  # scapy does not look for the addresses before AH
        udp = UDP(sport=0xC020, dport=7) / Raw(payload)
        ip = IP(src=expected.src, dst=expected.dst) if version == 4 else IPv6(src=expected.src, dst=expected.dst)
        expected[UDP].chksum = type(ip)(bytes(ip / udp))[UDP].chksum
    assert bytes(expected / Raw(payload)) == data[14:]


CONTROL = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:05", type=0x8808)
ETHERNET = "eth(destination=01:80:c2:00:00:01,source=02:00:00:00:00:05)"
TIMES = {f"c{priority}_pause_time": 10 * priority for priority in range(8)}
OURS = {"src": "198.18.0.2", "dst": "198.19.0.2", "ttl": 10, "id": 0, "flags": "DF"}
BUILT = {
    f"{ETHERNET}/pause": CONTROL / MACControlPause(),
    f"{ETHERNET}/pause(time=0x1234)": CONTROL / MACControlPause(pause_time=0x1234),
    f"{ETHERNET}/pfc(enable=0x81,{','.join(f'time{one}={10 * one}' for one in range(8))})": CONTROL
    / MACControlClassBasedFlowControl(c7_enabled=1, c0_enabled=1, **TIMES),
    "ipv4/gre/ppp/ipv6/udp": IP(**OURS)
    / GRE(proto=0x880B)
    / HDLC()
    / PPP(b"\x00\x57")
    / IPv6(src="2001:2::2", dst="2001:2:0:1::2", hlim=10)
    / UDP(sport=0xC020, dport=7),
    "ipv4/udp(checksum=no)/gtpc": IP(**OURS)
    / UDP(sport=0xC020, dport=2123, chksum=0)
    / GTPv2(version=2, P=0, T=0, gtp_type=1, seq=0, length=110),
    "ipv4/udp(checksum=no)/gtpc(type=34,teid=7,sequence=0x123456,p=1,spare1=1,spare2=9)": IP(**OURS)
    / UDP(sport=0xC020, dport=2123, chksum=0)
    / GTPv2(version=2, P=1, T=1, SPARE2=1, gtp_type=34, teid=7, seq=0x123456, length=110, SPARE3=9),
    f"{ETHERNET}/ptp": Ether(dst=CONTROL.dst, src=CONTROL.src, type=0x88F7)
    / PTP(messageType=0, messageLength=44, portNumber=1),
    "ipv4/udp(checksum=no)/ptp(sequence=9,clock=0x0102030405060708,seconds=5,flags=0x200)": IP(**OURS)
    / UDP(sport=0xC020, dport=319, chksum=0)
    / PTP(
        messageType=0,
        messageLength=44,
        portNumber=1,
        sequenceId=9,
        clockIdentity=0x0102030405060708,
        originTimestamp_seconds=5,
        flags=0x200,
    ),
}
"""What scapy builds."""


@pytest.mark.parametrize("text", BUILT)
def test_headers_that_end_the_walk_are_as_scapy_builds_them(text: str) -> None:
    data = Row(text, 160).data
    expected = BUILT[text] if Ether in BUILT[text] else Ether(data[:14]) / BUILT[text]
    size = Stack.parse(text).header_size
    built = bytes(expected / Raw(data[size:]))
    assert built[:size].hex() == data[:size].hex()


def test_the_checksum_of_igmp_covers_the_whole_packet() -> None:
    """As receivers verify it (RFC 2236 2.3), though RFC 1112 knows no longer message."""
    data = Row("ipv4/igmp(type=2,unused=9,group=239.1.2.3)", 100).data
    assert (data[23], data[34:36].hex(), data[38:42].hex()) == (2, "1209", "ef010203")
    assert checksum(data[34:]) == 0


@pytest.mark.parametrize("carrier", ["ipv4/udp", "ipv6/udp", "ipv6/tcp", "ipv4/icmp"])
def test_bytes_of_ones_own_stand_before_the_tag(carrier: str) -> None:
    data = Row(f"{carrier}/payload(data=0x0102030405)", 125).data
    packet = Ether(data)
    last = layers_of(packet)[-1]
    tag_at = len(data) - len(bytes(last.payload)) + 6  # an even byte
    assert bytes(last.payload)[:6] == bytes((1, 2, 3, 4, 5, 0))
    assert data[tag_at : tag_at + 3] == frame_bytes.TAG[:3]
    for layer in layers_of(packet):
        for name in COMPUTED:
            if can_compute(layer, name):
                layer.delfieldval(name)
    assert bytes(packet) == data


def test_bytes_of_ones_own_may_be_all_there_is() -> None:
    data = Row("eth(type=0x1234)/payload(data=0xabcdef)", 64).data
    assert data[12:21] == bytes.fromhex("1234abcdef00") + frame_bytes.TAG[:3]


@pytest.fixture(scope="module")
def dissected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What tshark says of every row, in one pass."""
    return dissect(tmp_path_factory.mktemp("frames"), ROWS)


def dissect(directory: Path, rows: tuple[Row, ...]) -> dict[str, dict[str, str]]:
    if shutil.which("tshark") is None:
        pytest.skip("needs Debian's tshark")
    wrpcap(str(directory / "frames.pcap"), [Ether(row.data) for row in rows])
    fields = ("frame.protocols", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message", *SUMS)
    names = [part for field in fields for part in ("-e", field)]
    command = ["tshark", "-r", str(directory / "frames.pcap"), *TSHARK, "-T", "fields", "-E", "separator=;", *names]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert len(said) == len(rows)
    return {
        row.text: dict(zip(fields, line.split(";", len(fields) - 1), strict=True))
        for row, line in zip(rows, said, strict=True)
    }


def sums_of(line: dict[str, str]) -> list[str]:
    return [status for name in SUMS for status in line[name].split(",") if status]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_tshark_finds_nothing_wrong(row: Row, dissected: dict[str, dict[str, str]]) -> None:
    line = dissected[row.text]
    assert not line["_ws.malformed"]
    severities = [int(one) for one in line["_ws.expert.severity"].split(",") if one]
    assert "hecksum" not in line["_ws.expert.message"]
    assert "ength" not in line["_ws.expert.message"]
    if not row.header:
        assert max(severities, default=0) < WARNING, line["_ws.expert.message"]
    sums = sums_of(line)
    if any(part in row.text for part in NOT_DISSECTED):
        assert set(sums) <= {GOOD, UNVERIFIED}
    else:
        assert set(sums) <= {GOOD, ABSENT}
        assert sums.count(GOOD) == len(row.frame.checksums) - row.text.count("mobility")  # of which it tells nothing


WRONG = (
    ("ipv4(checksum=0xdead)/udp", "ip.checksum.status=0"),
    ("ipv4/udp(checksum=0xdead)", "udp.checksum.status=0"),
    ("ipv6/udp(checksum=0xdead)", "udp.checksum.status=0"),
    ("ipv6/udp(checksum=no)", "illegal checksum"),
    ("ipv4/tcp(checksum=1)", "tcp.checksum.status=0"),
    ("ipv4/icmp(checksum=1)", "icmp.checksum.status=0"),
    ("ipv6/icmp(checksum=1)", "icmpv6.checksum.status=0"),
    ("ipv4/gre(checksum=1)/ipv4/udp", "gre.checksum.status=0"),
    ("ipv4(length=2000)/udp", "exceed"),
    ("ipv4(ihl=4)/udp", "header length"),
    ("ipv6(length=2000)/udp", "exceed"),
    ("ipv4/udp(length=2000)", "length"),
    ("ipv6/udp(length=7)", "length"),
    ("ipv4/tcp(data_offset=4)", "header length"),
    ("ipv4/udp/gtpu(length=2000)/ipv4/udp", "gtp"),
    ("ipv6/dest_options(length=200)/udp", "malformed"),
    ("ipv6/routing(segments=[2001:2::5],last_entry=9)/udp", "routing"),
)


def test_what_is_wrong_on_purpose_is_not_checked_and_tshark_objects(tmp_path: Path) -> None:
    rows = tuple(Row(text, 160) for text, _ in WRONG)
    lines = dissect(tmp_path, rows)
    for row, (text, sign) in zip(rows, WRONG, strict=True):
        line = lines[text]
        assert not row.frame.checked, text
        said = " ".join(f"{name}={value}" for name, value in line.items() if value).lower()
        assert sign.lower() in said, (text, said)


def test_ethernet_without_a_tunnel_header(tmp_path: Path) -> None:
    """What one of both programs does not know: Ethernet as IPv6's next header (RFC 8986), and behind MPLS
    without a control word (RFC 4448), which tshark must guess."""
    row = Row("ipv6/eth/vlan/ipv4/udp", 150)
    line = dissect(tmp_path, (row,))[row.text]
    assert line["frame.protocols"].startswith("eth:ethertype:ipv6:eth:ethertype:vlan:ethertype:ip:udp")
    assert sums_of(line) == [GOOD, GOOD]
    layers = layers_of(Ether(Row("mpls/eth/ipv4/udp", 150).data))
    assert [type(layer) for layer in layers] == [Ether, MPLS, Ether, IP, UDP]


def test_endpoints_are_the_outermost_addresses() -> None:
    assert ENDPOINTS.ipv4 is not None
    packet = Ether(Row("ipv4/ipv6/udp", 128).data)
    assert (packet[IP].src, packet[IP].dst) == tuple(map(str, ENDPOINTS.ipv4))
    assert (packet[IPv6].src, packet[IPv6].dst) == ("2001:2::2", "2001:2:0:1::2")
