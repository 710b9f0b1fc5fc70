# SPDX-License-Identifier: Apache-2.0
"""Frames of any headers through DUTs that know nothing of the tester: a kernel bridge and a kernel router
in namespaces made by hand (by_hand.sh), and TAYGA. Root only."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.packet import Raw
from scapy.utils import wrpcap, wrpcapng

from dutperf import traffic
from dutperf.engine.factory import engine_on
from dutperf.model import ArrivedTags, Direction, DirectionCounts, OtherTags, TrialResult
from dutperf.results import beside
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.tester import Tester, TesterError
from plans import make_trial
from undisturbed import LOSS_IS_CERTAIN, valid

from . import vlan_programs
from .measuring import bench
from .test_by_hand import BY_HAND, DUT_CORE, SIDES

pytestmark = pytest.mark.root
RATE_FPS = 2000
SIZE = 300
LIMITED_FPS, BUCKET = 150, 5
Config = dict[str, Any]


@contextmanager
def by_hand(what: str) -> Iterator[str]:
    """The DUT's namespace and the tester's, whose name is yielded."""
    name = f"described-{secrets.token_hex(3)}"
    try:
        subprocess.run(["sh", BY_HAND, what, name, str(DUT_CORE)], check=True, timeout=60)
        yield name
    finally:
        subprocess.run(["sh", BY_HAND, "down", name], check=True, timeout=60)


def mac(namespace: str, port: str) -> str:
    shown = subprocess.run(
        ["ip", "-json", "-n", namespace, "link", "show", port], check=True, capture_output=True, timeout=10
    )
    return str(json.loads(shown.stdout)[0]["address"])


def run_of(config: Config, tester: Tester, **conditions: Any) -> TrialResult:
    """One trial of a third of a second."""
    setup = configuration.Setup.model_validate(config)
    chosen = SingleTrial(**({"duration_s": 0.3, "drain_s": 0.2, "frame_sizes": (SIZE,)} | conditions))
    sized = traffic.of(setup, chosen).sized()
    planned = make_trial(setup, sized, sized.frame_sizes[0], RATE_FPS, 1)
    return tester.run(planned.model_copy(update={"by_flow": True}))


def all_arrived(counts: DirectionCounts) -> bool:
    return counts.received == counts.sent == counts.intended and counts.corrupted == 0


RunOnce = Callable[..., TrialResult]
"""One valid trial under conditions."""


@contextmanager
def ready(config: Config) -> Iterator[RunOnce]:
    """For many trials."""
    with engine_on(configuration.Setup.model_validate(config), 1518) as tester:
        yield lambda **conditions: valid(lambda: run_of(config, tester, **conditions))


def trial_of(config: Config, **conditions: Any) -> TrialResult:
    """One valid trial."""
    with ready(config) as run:
        return run(**conditions)


@pytest.fixture(scope="module")
def bridge() -> Iterator[RunOnce]:
    with by_hand("bridge") as name:
        sides = {
            "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/15", "ipv6": "2001:2::2/48"},
            "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/15", "ipv6": "2001:2::3/48"},
        }
        for side, opposite in (("left", "eth2"), ("right", "eth1")):
            sides[side]["gateway_mac"] = mac(name, opposite)
        with ready({"engine": {"netns": name}, **sides}) as run:
            yield run


@pytest.fixture(scope="module")
def router() -> Iterator[RunOnce]:
    with by_hand("router") as name, ready({"engine": {"netns": name}, **SIDES["router"]}) as run:
        yield run


@pytest.mark.parametrize(
    "frame",
    [
        "vlan(id=10,pcp=5)/ip/udp",
        "vlan(id=100,type=0x88a8)/vlan(id=5)/ipv6/hop_by_hop/udp",
        "vlan/mpls(label=17)/ipv4/tcp(flags=S)",
        "ip/udp/vxlan/eth/vlan/ipv4/udp",
        "ipv6/udp/gtpu(sequence=1)/ipv4/icmp",
        "eth(type=0x88b5)",
    ],
)
def test_a_bridge_passes_every_frame(bridge: RunOnce, frame: str) -> None:
    hidden = ArrivedTags(hidden=True) if frame.startswith("vlan") else None  # AF_XDP on a veth
    for counts in bridge(frame=frame).directions().values():
        assert all_arrived(counts)
        assert counts.vlan_tags == hidden


@pytest.mark.parametrize(
    "frame",
    [
        "ip(options=rr(3),dscp=46)/udp",
        "ip(options=[router_alert,nop,timestamp(2)])/tcp(flags=S,options=mss(1460))",
        "ip/icmp",
        "ip/gre(key=5,checksum=yes)/ipv6/udp",
        "ip/udp/vxlan/eth/ipv4/udp",
    ],
)
def test_a_router_passes_packets_whose_headers_it_changes(router: RunOnce, frame: str) -> None:
    assert all(all_arrived(counts) for counts in router(frame=frame).directions().values())


def test_frames_of_a_capture_through_a_router(router: RunOnce, tmp_path: Path) -> None:
    """A capture that scapy wrote: a DNS query, and a GRE tunnel."""
    network = IP(src="198.18.0.2", dst="198.19.0.2", ttl=9)
    query = Ether() / network / UDP(sport=53, dport=53) / DNS(qd=DNSQR(qname="a-name-long-enough.example"))
    tunnel = Ether() / network / GRE(chksum_present=1) / IPv6() / TCP(flags="PA") / Raw(b"GET / HTTP/1.1\r\n" * 3)
    capture = str(tmp_path / "capture.pcapng")
    wrpcapng(capture, [query, tunnel])
    for number, packet in enumerate((query, tunnel), 1):
        result = router(frame_from=f"{capture}:{number}", directions="forward", frame_sizes=len(packet) + 4)
        assert all(all_arrived(counts) for counts in result.directions().values())


def test_frames_that_the_dut_sends_back(tmp_path: Path) -> None:
    """They are known as test frames of the wrong direction, also where only this direction sends."""
    back = Ether() / IP(src="198.18.0.2", dst="198.18.0.99") / GRE() / IP() / Raw(b"x" * 80)
    capture = str(tmp_path / "capture.pcap")
    wrpcap(capture, back)
    with by_hand("router") as name:
        subprocess.run(
            ["ip", "-n", f"{name}-dut", "neigh", "add", "198.18.0.99", "lladdr", mac(name, "eth1"), "dev", "west"],
            check=True,
        )
        members = {"frame_from": capture, "directions": "forward", "frame_sizes": len(back) + 4}
        setup = {"engine": {"netns": name}, **SIDES["router"]}
        with engine_on(configuration.Setup.model_validate(setup), 1518) as tester:
            result = run_of(setup, tester, **members)
        counts = result.forward
        assert counts is not None
        assert (counts.received, counts.other_received.get("wrong_direction")) == (0, counts.sent)
        assert counts.misdelivered == {"left": counts.sent}
        assert "returned" in {cause.code for cause in result.causes}


@pytest.mark.usefixtures("lab_records")
def test_a_translator_makes_other_headers() -> None:
    with bench("tayga-siit") as tayga:
        for frame in ("ip/udp", "ip/tcp(flags=SA)", "ip/icmp"):
            result = valid(lambda frame=frame: tayga.run(RATE_FPS, frame=frame, frame_sizes=(SIZE,)))
            assert all(all_arrived(counts) for counts in result.directions().values()), frame


WEB, VOICE, LOGIN = (10, 1024), (20, 3000), (10, 5000)
"""VLAN and first source port of each stream, by which the DUT can tell its flows."""
STREAMS = (WEB, VOICE, LOGIN)
PROFILE = [
    {"name": "web", "flows": 400, "share": 2, "frame": "vlan(id=10)/ip/udp(source=increment(1024,count=400,by=flow))"},
    {"name": "voice", "flows": 300, "frame": "vlan(id=20,pcp=5)/ip/udp(source=increment(3000,count=300,by=flow))"},
    {"name": "login", "flows": 300, "frame": "vlan(id=10)/ip/tcp(source=increment(5000,count=300,by=flow))"},
]
"""Three streams, 1,000 flows, two VLANs."""
LIMIT = f"limit rate over {LIMITED_FPS}/second burst {BUCKET} packets"
RULES = f"""
table inet truth {{
  set dropped {{ type mark . inet_service; flags dynamic; counter; size 65535; }}
  set forwarded {{ type mark . inet_service; flags dynamic; counter; size 65535; }}
  chain forwarded {{
    type filter hook forward priority 0; policy accept;
    iifname != "west" accept
    meta mark 20 {LIMIT} add @dropped {{ meta mark . th sport }} drop
    add @forwarded {{ meta mark . th sport }}
  }}
}}
"""


def counters(namespace: str, name: str) -> dict[tuple[int, int], int]:
    """Packets by VLAN and source port, as the DUT counted them."""
    command = ["ip", "netns", "exec", namespace, "nft", "--json", "list", "set", "inet", "truth", name]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=10).stdout)
    elements = next(one["set"].get("elem", []) for one in listed["nftables"] if "set" in one)
    return {tuple(one["elem"]["val"]["concat"]): one["elem"]["counter"]["packets"] for one in elements}


def by_flow(counts: DirectionCounts, of_flow: Callable[[Any], tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """A count of each flow by its VLAN and source port, of all sizes together; without zeros."""
    assert counts.kinds is not None
    found: dict[tuple[int, int], int] = {}
    streams = [stream for stream in STREAMS for _ in range(3)]
    for (vlan, first), kind in zip(streams, counts.kinds, strict=True):
        for flow, count in enumerate(of_flow(kind.flows)):
            if count:
                found[vlan, first + flow] = found.get((vlan, first + flow), 0) + count
    return found


@pytest.mark.long
def test_a_dut_that_has_its_addresses_in_a_vlan(tmp_path: Path) -> None:
    frame = "vlan(id=10)/ip/udp"
    with by_hand("router") as name:
        vlan_programs.attach(f"{name}-dut", ("west", "east"), tmp_path, only=10)
        sides = {side: members | {"vlans": [10]} for side, members in SIDES["router"].items()}
        result = trial_of({"engine": {"netns": name}, **sides}, frame=frame)
        assert all(all_arrived(counts) for counts in result.directions().values())
        with pytest.raises(TesterError, match="did not answer ARP"):
            trial_of({"engine": {"netns": name}, **SIDES["router"]}, frame=frame)


def test_a_dut_without_the_vlan_of_the_frames() -> None:
    """It does not answer where it is asked in the VLAN; else all frames are lost, and a hint says why."""
    with by_hand("router") as name:
        sides = {side: members | {"vlans": [10]} for side, members in SIDES["router"].items()}
        said = "within 3000 ms; it was asked in VLAN 10, and answers without a tag"
        with pytest.raises(TesterError, match=said):
            trial_of({"engine": {"netns": name}, **sides})
        config = {"engine": {"netns": name}, **SIDES["router"]}
        with engine_on(configuration.Setup.model_validate(config), 1518) as tester:
            result = run_of(config, tester, frame="vlan(id=10)/ip/udp")  # valid or not: the hint depends on no time
        assert not any(counts.received for counts in result.directions().values())
        assert sum("nothing arrived: frames carry VLAN 10" in text for text in beside.of_trial(result)) == 2


def test_a_dut_that_takes_tags_away(tmp_path: Path) -> None:
    """It is no pass where the tags should stay."""
    tagged = "vlan(id=10)/ip/udp"
    sides = {side: members | {"port": f"af_packet:{members['port']}"} for side, members in SIDES["router"].items()}
    with by_hand("router") as name:
        vlan_programs.attach(f"{name}-dut", ("west", "east"), tmp_path, ways=("ingress",))
        config = {"engine": {"netns": name}, **sides}
        with engine_on(configuration.Setup.model_validate(config), 1518) as tester:
            result = run_of(config, tester, frame=tagged)
            assert "vlan_tags" in {cause.code for cause in result.causes}
            for counts in result.directions().values():
                came = counts.received + counts.duplicates
                assert counts.vlan_tags == ArrivedTags(other=came, seen=(OtherTags(tags="", frames=came),))
            taken_away = config | {"left": sides["left"] | {"frame": tagged}}
            result = valid(lambda: run_of(taken_away, tester, directions="forward"))
            assert all_arrived(result.directions()[Direction.FORWARD])


ELSEWHERE = """
table ip elsewhere {
  chain arriving {
    type filter hook prerouting priority raw
    ip daddr 198.19.0.2 numgen inc mod 4 == 0 ip daddr set 198.19.0.77
  }
}
"""


@pytest.mark.parametrize(
    "traffic", [{}, {"frame": "ip/udp"}, {"size_mix": "imix"}], ids=["plain", "described", "mixed"]
)
def test_a_router_that_forwards_a_quarter_to_another_address(traffic: dict[str, str]) -> None:
    """Every checksum is right, and every frame arrives."""
    with by_hand("router") as name:
        dut, link = f"{name}-dut", ["ip", "-n", name, "-json", "link", "show", "eth2"]
        [port] = json.loads(subprocess.run(link, check=True, capture_output=True).stdout)
        host = ["198.19.0.77", "lladdr", port["address"], "dev", "east"]
        subprocess.run(["ip", "-n", dut, "neighbour", "replace", *host], check=True)
        subprocess.run(["ip", "netns", "exec", dut, "nft", "-f", "-"], check=True, text=True, input=ELSEWHERE)
        config = {"engine": {"netns": name}, **SIDES["router"]}
        with engine_on(configuration.Setup.model_validate(config), 1518) as tester:
            result = run_of(config, tester, **traffic)
    assert "destinations" in {cause.code for cause in result.causes}
    found = result.directions()[Direction.FORWARD]
    assert found.destinations is not None
    assert found.destinations.other == found.destinations.seen[0].frames == pytest.approx(found.sent / 4, abs=1)
    assert str(found.destinations.seen[0].address) == "198.19.0.77"
    assert result.directions()[Direction.REVERSE].destinations is None


@pytest.mark.long
def test_streams_and_flows_agree_with_the_duts_counters(tmp_path: Path) -> None:
    streams = [{"directions": "forward", "sizes": "imix"} | one for one in PROFILE]
    streams.append({"name": "back", "directions": "reverse", "frame": "vlan(id=20)/ip/udp"})
    counted: list[tuple[TrialResult, dict[tuple[int, int], int], dict[tuple[int, int], int]]] = []
    with by_hand("router") as name:
        config = {"engine": {"netns": name}, **SIDES["router"], "streams": streams}
        dut = f"{name}-dut"
        vlan_programs.attach(dut, ("west", "east"), tmp_path)
        with engine_on(configuration.Setup.model_validate(config), 1518) as tester:

            def attempt() -> TrialResult:
                command = ["ip", "netns", "exec", dut, "nft", "-f", "-"]
                subprocess.run(command, input=f"flush ruleset\n{RULES}", text=True, check=True, timeout=10)
                result = run_of(config, tester, duration_s=2)
                counted.append((result, counters(dut, "dropped"), counters(dut, "forwarded")))
                return result

            result = valid(attempt, LOSS_IS_CERTAIN)
    dropped, forwarded = next(of_dut for one, *of_dut in counted if one is result)
    counts = result.directions()[Direction.FORWARD]
    assert counts.kinds is not None
    assert sum(kind.sent for kind in counts.kinds[:3]) == pytest.approx(counts.sent / 2, abs=12)
    assert counts.lost == sum(dropped.values()) > 0
    assert by_flow(counts, lambda flows: flows.lost()) == dropped
    assert by_flow(counts, lambda flows: flows.received) == forwarded
    assert {vlan for vlan, _ in forwarded} == {10, 20}
    assert all_arrived(result.directions()[Direction.REVERSE])


def test_a_router_that_is_not_the_end_of_the_tunnel() -> None:
    """It forwards the tunnel to its end, and what comes back has never been in one."""
    sides = SIDES["router"]
    left = sides["left"] | {"tunnel": "ipv4(destination=198.19.0.2)"}
    with by_hand("router") as name:
        config = {"engine": {"netns": name}, "left": left, "right": sides["right"]}
        with engine_on(configuration.Setup.model_validate(config), 1518) as tester:
            result = run_of(config, tester)
    assert {(one.code, one.direction) for one in result.causes} >= {("encapsulation", Direction.FORWARD)}
    assert ("encapsulation", Direction.REVERSE) not in {(one.code, one.direction) for one in result.causes}
    forward, reverse = result.directions().values()
    assert forward.not_decapsulated == forward.received == forward.sent > 0
    assert reverse.not_encapsulated == reverse.received == reverse.sent > 0
    assert forward.not_encapsulated == reverse.not_decapsulated == 0
