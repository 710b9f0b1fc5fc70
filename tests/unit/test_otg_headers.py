# SPDX-License-Identifier: Apache-2.0
"""Headers of the Open Traffic Generator API beyond plain fields, as scapy has them, and where errors are."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.gtp_v2 import GTPHeader as GTPv2
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.inet import IP, IPOption_Router_Alert, IPOption_Timestamp
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import GRE, Ether
from scapy.layers.ppp import HDLC, PPP
from scapy.layers.vxlan import VXLAN
from scapy.utils import checksum

from dutperf.otg.model import Rejected
from otg_messages import UDP as UDP_PACKET
from otg_messages import flow, frames, planned

ETHERNET: dict[str, Any] = {"ethernet": {}}
MAC = "00:00:00:00:00:00"
SEGMENTS = [{"segment": {"value": "2001:2::7"}}, {"segment": {"value": "2001:2::6"}}]


def value(number: int | str) -> dict[str, Any]:
    return {"value": number}


def values(*numbers: int) -> dict[str, Any]:
    return {"choice": "values", "values": numbers}


def routed(**members: Any) -> list[dict[str, Any]]:
    header = {"routing": {"segment_routing": {"segment_list": SEGMENTS, **members}}}
    return [ETHERNET, {"ipv6": {}}, {"ipv6_extension_header": header}, {"udp": {}}]


# --- IPv4 -----------------------------------------------------------------------------------------


def options(*each: dict[str, Any]) -> IP:
    [data] = frames([ETHERNET, {"ipv4": {"options": each}}, {"udp": {}}])
    packet = Ether(data)
    del packet[IP].chksum, packet[IP].ihl
    assert bytes(packet) == data, "length and checksum are right"
    return packet[IP]


def test_an_option_is_a_router_alert_if_nothing_else_is_said() -> None:
    [option] = options({}).options
    assert isinstance(option, IPOption_Router_Alert)
    assert option.alert == 0


def test_options_of_the_users_own_and_their_end() -> None:
    kind = {"copied_flag": value(1), "option_class": value(2), "option_number": value(30)}
    whole = bytes(options({"custom": {"type": kind, "value": "abcd01"}}, {"choice": "end_of_options"}))
    assert whole[20:28].hex() == "de05abcd01000000"
    short = bytes(options({"custom": {"length": {"value": 3}}}))
    assert short[20:24].hex() == "00030000"


def test_timestamps_of_options() -> None:
    [option] = options(
        {"timestamp": {"overflow": value(3), "format": {"timestamps": [{"timestamp": value(7)}]}}}
    ).options
    assert isinstance(option, IPOption_Timestamp)
    assert (option.pointer, option.oflw, option.flg, option.length) == (5, 3, 0, 8)
    entry = {"address": value("198.18.1.1"), "timestamp": value(9)}
    made = {"pointer": {"value": 13}, "format": {"prespecified_address_and_timestamps": [entry, {}]}}
    whole = bytes(options({"timestamp": made}))
    assert whole[20:40].hex() == "44140d03" + "c6120101" + "00000009" + 16 * "0"


def test_a_source_route_of_the_users_own_is_followed_for_checksums() -> None:
    kind = {"copied_flag": value(1), "option_number": value(3)}
    route = {"custom": {"type": kind, "value": "04c6120201"}}
    [data] = frames([ETHERNET, {"ipv4": {"options": [route], "src": value("198.18.0.2")}}, {"udp": {}}])
    pseudo = bytes.fromhex("c6120002c6120201") + (17).to_bytes(2, "big") + (len(data) - 42).to_bytes(2, "big")
    assert checksum(pseudo + data[42:]) == 0


def test_type_of_service() -> None:
    tos = {"precedence": value(5), "delay": values(0, 1), "unused": values(0, 0, 1)}
    each = frames([ETHERNET, {"ipv4": {"priority": {"tos": tos}}}, {"udp": {}}], 6)
    assert [Ether(one)[IP].tos for one in each] == [0xA0 | number for number in (0, 16, 1, 16, 0, 17)]


def test_flags_of_tcp_may_vary() -> None:
    tcp = {"ctl_syn": values(1, 0), "ctl_ack": values(0, 1), "ctl_fin": value(1)}
    each = frames([ETHERNET, {"ipv4": {}}, {"tcp": tcp}], 3)
    assert [str(Ether(one)["TCP"].flags) for one in each] == ["FS", "FA", "FS"]


# --- IPv6 -----------------------------------------------------------------------------------------


def test_segment_routing() -> None:
    flags = {"protected": value(1), "alert": value(1)}
    [data] = frames(routed(tag=value(9), flags=flags, pad_tlv={}), size=160)
    packet = Ether(data)
    srh = packet[IPv6ExtHdrSegmentRouting]
    assert (packet[IPv6].nh, srh.nh, srh.len, srh.segleft, srh.lastentry, srh.tag) == (43, 17, 5, 2, 1, 9)
    assert srh.addresses == ["2001:2::7", "2001:2::6"], "the list stands in the frame as it is given"
    assert bytes(srh)[5] == 0b01010000
    assert bytes(srh)[40:48].hex() == "0406000000000000"
    pseudo = bytes(16) + bytes.fromhex("20010002" + 20 * "0" + "0007") + (len(data) - 102).to_bytes(4, "big")
    assert checksum(pseudo + (17).to_bytes(4, "big") + data[102:]) == 0, "the last segment is the destination"


def test_segments_vary_and_the_rest_may_be_given() -> None:
    counter = {"increment": {"start": "2001:2::7", "step": "::2", "count": 2}}
    each = frames(routed(segment_list=[{"segment": counter}, {}], segments_left=value(0)), 3)
    found = [Ether(one)[IPv6ExtHdrSegmentRouting] for one in each]
    assert [one.addresses for one in found] == [["2001:2::7", "::"], ["2001:2::9", "::"], ["2001:2::7", "::"]]
    assert {one.segleft for one in found} == {0}
    [data] = frames(routed(last_entry=value(7)))
    assert data[58] == 7


def test_an_extension_header_without_another_says_so() -> None:
    header = {"routing": {"segment_routing": {"segment_list": SEGMENTS}}}
    [data] = frames([ETHERNET, {"ipv6": {}}, {"ipv6_extension_header": header}])
    assert Ether(data)[IPv6ExtHdrSegmentRouting].nh == 59


@pytest.mark.parametrize(
    ("container", "address"),
    [
        ({"locator": value("fc00::"), "usids": ["0001", "0002", "0003"]}, "fc00:0:1:2:3::"),
        ({"locator": value("fc00:1:2::"), "locator_length": value(48), "usids": ["0xab"]}, "fc00:1:2:ab00::"),
        ({"locator_length": value(0), "usids": ["00000000", "00000000", "00030004", "00010002"]}, "::3:4:1:2"),
    ],
)
def test_micro_segments(container: dict[str, Any], address: str) -> None:
    """The examples of the model."""
    [data] = frames([ETHERNET, {"ipv6": {"dst_usids": container}}, {"udp": {}}])
    assert Ether(data)[IPv6].dst == address
    header = {"routing": {"segment_routing_usid": {"segment_list": [container], "flags": {"oam": value(1)}}}}
    [data] = frames([ETHERNET, {"ipv6": {}}, {"ipv6_extension_header": header}, {"udp": {}}])
    srh = Ether(data)[IPv6ExtHdrSegmentRouting]
    assert (srh.addresses, bytes(srh)[5]) == ([address], 0b00100000)


# --- tunnels and others ---------------------------------------------------------------------------


def test_reserved_bits_of_vxlan() -> None:
    vxlan = {"reserved0": value(0x010203), "vni": value(5), "reserved1": value(9)}
    [data] = frames([*UDP_PACKET[:2], {"udp": {"dst_port": value(4789)}}, {"vxlan": vxlan}, ETHERNET, {"ipv4": {}}])
    assert bytes(Ether(data)[VXLAN])[:8].hex() == "0801020300000509"


def test_gre_has_a_checksum_by_its_flag() -> None:
    gre = {"checksum_present": value(1), "reserved0": value(0x111), "reserved1": value(7)}
    [data] = frames([ETHERNET, {"ipv4": {}}, {"gre": gre}, {"ipv4": {}}, {"udp": {}}])
    packet = Ether(data)
    assert data[34:36].hex() == "8888"
    assert packet[GRE].offset == 7
    assert checksum(data[34:]) == 0
    own = gre | {"checksum": {"custom": 0xBEEF}}
    [data] = frames([ETHERNET, {"ipv4": {}}, {"gre": own}, {"ipv4": {}}, {"udp": {}}])
    assert Ether(data)[GRE].chksum == 0xBEEF


def test_gtpv1_has_its_optional_fields_by_its_flags() -> None:
    def gtp(**members: Any) -> GTP_U_Header:
        header = {"message_type": value(255), **members}
        packet = [*UDP_PACKET[:2], {"udp": {"dst_port": value(2152)}}, {"gtpv1": header}, {"ipv4": {}}, {"udp": {}}]
        return Ether(frames(packet)[0])[GTP_U_Header]

    assert len(gtp()) - len(gtp().payload) == 8
    one = gtp(s_flag=value(1), squence_number=value(77), reserved=value(1))
    assert (one.E, one.S, one.PN, one.seq, one.npdu, one.next_ex, one.reserved) == (0, 1, 0, 77, 0, 0, 1)
    container = {"extension_length": value(1), "contents": value(0x1009)}
    one = gtp(e_flag=value(1), next_extension_header_type=value(0x85), extension_headers=[container])
    assert (one.E, one.S, one.PN, one.length) == (1, 0, 0, len(one) - 8)
    assert one[GTPPDUSessionContainer].QFI == 9
    assert isinstance(one[GTPPDUSessionContainer].payload, IP)


def test_gtpv2() -> None:
    def gtp(**members: Any) -> GTPv2:
        [data] = frames([*UDP_PACKET[:2], {"udp": {"dst_port": value(2123)}}, {"gtpv2": members}])
        return GTPv2(data[42:])

    one = gtp(message_type=value(32), sequence_number=value(0x010203))
    assert (one.version, one.P, one.T, one.gtp_type, one.seq, one.length) == (2, 0, 0, 32, 0x010203, len(one) - 4)
    one = gtp(teid_flag=value(1), teid=values(9, 8), piggybacking_flag=value(1))
    assert (one.T, one.P, one.teid) == (1, 1, 9)


def test_ppp() -> None:
    built = Ether(src=MAC, dst=MAC, type=0x880B) / HDLC() / PPP(b"\x00\x57")
    [data] = frames([ETHERNET, {"ppp": {}}, {"ipv6": {}}, {"udp": {}}])
    assert data[:18] == bytes(built)[:18]
    [data] = frames([ETHERNET, {"ppp": {"control": value(9)}}])
    assert data[14:18].hex() == "ff090021"


def test_igmpv1() -> None:
    [data] = frames([ETHERNET, {"ipv4": {}}, {"igmpv1": {"type": value(2), "group_address": value("239.1.2.3")}}])
    assert (Ether(data)[IP].proto, data[34:36].hex(), data[38:42].hex()) == (2, "1200", "ef010203")
    assert checksum(data[34:]) == 0


def test_pause_frames() -> None:
    head = Ether(dst="01:80:c2:00:00:01", src=MAC, type=0x8808)
    [data] = frames([{"ethernetpause": {"time": value(77)}}])
    assert data[:18] == bytes(head / MACControlPause(pause_time=77))[:18]
    pfc = {"class_enable_vector": value(0x81), "pause_class_0": value(1), "pause_class_7": values(2, 3)}
    for number, data in enumerate(frames([{"pfcpause": pfc}], 2)):
        made = MACControlClassBasedFlowControl(c0_enabled=1, c7_enabled=1, c0_pause_time=1, c7_pause_time=2 + number)
        assert data[:34] == bytes(head / made)[:34]


# --- errors ---------------------------------------------------------------------------------------


def ipv4(**members: Any) -> list[dict[str, Any]]:
    return [ETHERNET, {"ipv4": members}, {"udp": {}}]


def tunnelled(name: str, **members: Any) -> list[dict[str, Any]]:
    return [*UDP_PACKET, {name: members}, {"ipv4": {}}]


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        (ipv4(time_to_live=value(256)), "[1].ipv4.time_to_live: 256 does not fit in 8 bits (0 to 255)"),
        (
            ipv4(total_length=values(60, 61)),
            "[1].ipv4.total_length: cannot vary: the layout of the frame depends on it",
        ),
        (
            ipv4(priority={"dscp": {"phb": value(64)}}),
            "[1].ipv4.priority.dscp.phb: 64 does not fit in 6 bits (0 to 63)",
        ),
        (ipv4(priority={"tos": {"delay": value(2)}}), "[1].ipv4.priority.tos.delay: 2 does not fit in 1 bits (0 to 1)"),
        (ipv4(options=[{"custom": {"value": "zz"}}]), "[1].ipv4.options[0].custom.value: 'zz' are no bytes in"),
        (
            ipv4(options=[{"custom": {"value": 41 * "00"}}]),
            "[1].ipv4: the options have 44 bytes; at most 40 are possible",
        ),
        (
            ipv4(options=[{"custom": {"type": {"option_number": values(1, 2)}}}]),
            "[1].ipv4.options[0].custom.type: it cannot vary: all frames have the same",
        ),
        (
            ipv4(options=[{"custom": {"length": {"value": 300}}}]),
            "[1].ipv4.options[0].custom.length: 300 is not 0 to 255",
        ),
        (
            [{"ethernet": {"ether_type": value(70000)}}, {"vlan": {}}],
            "[0].ethernet.ether_type: 70000 does not fit in 16 bits (0 to 65535)",
        ),
        (
            [ETHERNET, {"vlan": {"tpid": value(70000)}}],
            "[1].vlan.tpid: 70000 does not fit in 16 bits (0 to 65535)",
        ),
        ([ETHERNET, {"ipv4": {}}, {"icmp": {"echo": {"code": value(999)}}}], "[2].icmp.echo.code: 999 does not fit"),
        ([*UDP_PACKET, {"tcp": {}}], "[3].tcp: cannot follow udp; it carries mpls, vxlan, gre, gtpv1, gtpv2, custom"),
        ([ETHERNET, {"arp": {}}, {"udp": {}}], "[2].udp: cannot follow arp, which carries none"),
        ([*UDP_PACKET, {"vxlan": {}}], "[3].vxlan: cannot be the last header"),
        ([{"pfcpause": {"pause_class_3": value(70000)}}], "[0].pfcpause.pause_class_3: 70000 does not fit in 16 bits"),
        (
            routed(segment_list=[]),
            "[2].ipv6_extension_header.routing.segment_routing.segment_list: at least one segment",
        ),
        (routed(pad_tlv={"length": value(5)}), "segment_routing.pad_tlv.length: 5 bytes do not end at a multiple of 8"),
        (routed(segments_left=values(0, 1)), "routing.segment_routing.segments_left: cannot vary: the layout"),
        (
            [ETHERNET, {"ipv6": {"dst": value("::1"), "dst_usids": {}}}],
            "[1].ipv6.dst_usids: it is given beside dst; only one of them is possible",
        ),
        ([ETHERNET, {"ipv6": {"dst_usids": {"usids": 7 * ["0001"]}}}], "usids: locator and segments have 144 bits; an"),
        ([ETHERNET, {"ipv6": {"dst_usids": {"usids": ["x"]}}}], "[1].ipv6.dst_usids.usids[0]: 'x' are no hexadecimal"),
        (
            [ETHERNET, {"ipv4": {}}, {"gre": {"reserved1": value(1)}}, {"ipv4": {}}],
            "[2].gre.reserved1: it is in the frame with checksum_present 1 only",
        ),
        ([ETHERNET, {"ipv4": {}}, {"gre": {"reserved0": value(512)}}], "[2].gre.reserved0: 512 does not fit in 9 bits"),
        (
            tunnelled("gtpv1", n_pdu_number=value(1)),
            "[3].gtpv1.n_pdu_number: it is in the frame with e_flag, s_flag or pn_flag 1 only",
        ),
        (
            tunnelled("gtpv1", extension_headers=[{}]),
            "[3].gtpv1.extension_headers: they are in the frame with e_flag 1",
        ),
        (tunnelled("gtpv1", e_flag=values(0, 1)), "[3].gtpv1.e_flag: it cannot vary: all frames have the same"),
        (
            tunnelled("gtpv1", e_flag=value(1), extension_headers=[{}]),
            "[3].gtpv1.extension_headers[0].extension_length: 0 is not possible",
        ),
        (
            tunnelled(
                "gtpv1", e_flag=value(1), extension_headers=[{"extension_length": value(1), "contents": value(1 << 16)}]
            ),
            "[3].gtpv1.extension_headers[0].contents: 65536 is not 0 to 65535",
        ),
        (tunnelled("gtpv1", e_flag=value(1), next_extension_header_type=value(1)), "[3].gtpv1: extensions have to be"),
        ([*UDP_PACKET, {"gtpv2": {"teid": value(7)}}], "[3].gtpv2.teid: it is in the frame with teid_flag 1 only"),
    ],
)
def test_an_error_names_the_field_of_the_configuration(packet: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        planned(flow(packet=packet))
    assert str(caught.value).startswith("flows[0].packet[")
    assert said in str(caught.value)


def test_what_is_not_in_the_frame_may_be_zero() -> None:
    """Clients write all fields of a header."""
    zero = {"squence_number": value(0), "n_pdu_number": value(0), "next_extension_header_type": value(0)}
    assert frames(tunnelled("gtpv1", **zero)) == frames(tunnelled("gtpv1"))
    gre = {"checksum": {"generated": "good"}, "reserved1": value(0)}
    assert frames([ETHERNET, {"ipv4": {}}, {"gre": gre}, {"ipv4": {}}]) == frames(
        [ETHERNET, {"ipv4": {}}, {"gre": {}}, {"ipv4": {}}]
    )
