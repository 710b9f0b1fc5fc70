# SPDX-License-Identifier: Apache-2.0
"""The real engine on real DUTs: the DUT's own counters agree, and each fault is charged to whom it
belongs. Root only.

No test asserts that this machine is quiet. What a trial must show holds whatever else happens;
where a loss-free trial is needed, a rate far below what any machine forwards is used, and an
invalid trial is run again, as every procedure does.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dutperf import dut
from dutperf.model import Direction, Stamping, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.tester import TesterError
from undisturbed import LOSS_IS_CERTAIN, until, valid

from .measuring import Bench, bench

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

SLOW_FPS = 2_000


@pytest.fixture
def router() -> Iterator[Bench]:
    """The kernel as an IPv4 router."""
    with bench("kernel-ipv4") as ready:
        yield ready


@pytest.fixture
def tayga() -> Iterator[Bench]:
    """TAYGA as a stateless NAT64 gateway."""
    with bench("tayga-siit") as ready:
        yield ready


@pytest.fixture(scope="module")
def translator() -> Iterator[Bench]:
    """TAYGA for many trials, none of which harms it."""
    with bench("tayga-siit") as ready:
        yield ready


def sent(result: TrialResult) -> int:
    """Frames that left in both directions."""
    return sum(counts.sent for counts in result.directions().values())


def causes(result: TrialResult) -> set[str]:
    """Codes of what speaks against a result."""
    return {cause.code for cause in result.causes}


LOST_BY_DUT = {"tayga-464xlat": 2}
"""One TAYGA sends the UDP checksum of one IPv6 packet in 65,536 as 0, which the other one discards (RFC 8200 8.1)."""


@pytest.mark.parametrize(
    "name", ["tayga-siit", "tayga-464xlat", "srv6", "vxlan", "nptv6", "kernel-ipv4", "kernel-ipv6", "loopback"]
)
def test_a_slow_trial_loses_nothing(name: str) -> None:
    with bench(name) as ready:
        row = dut.of_setup(ready.setup)
        for networks in (1, 256):
            result = valid(lambda networks=networks: row.losses_during(lambda: ready.run(SLOW_FPS, networks=networks)))
            for way, counts in result.directions().items():
                assert counts.sent == counts.intended == 1000
                assert counts.lost == sum((result.dut_losses or {}).get(way, {}).values()) <= LOST_BY_DUT.get(name, 0)
                assert (counts.duplicates, counts.corrupted, counts.stale) == (0, 0, 0)


@pytest.mark.parametrize("end", ["left", "right"])
@pytest.mark.parametrize("name", ["srv6", "vxlan", "tayga-464xlat"])
def test_one_end_alone_loses_nothing(name: str, end: str) -> None:
    with bench(name, {"end": end}) as ready:
        networks = {} if name == "tayga-464xlat" else {"networks": 256}
        for chosen in (networks, {"frame_sizes": (1400,), "foreground": "2:1"}, {"flows": 100}):
            result = valid(lambda chosen=chosen: ready.run(SLOW_FPS, **chosen))
            for counts in result.directions().values():
                assert counts.sent == counts.received == counts.intended == 1000
                assert (counts.duplicates, counts.corrupted, counts.stale) == (0, 0, 0)


@pytest.mark.parametrize("port", ["af_packet", pytest.param("af_xdp", marks=pytest.mark.long)])
def test_both_kinds_of_kernel_ports_work(port: str) -> None:
    with bench("kernel-ipv6") as ready:
        names = {"left": f"{port}:tl", "right": f"{port}:tr"}
        assert ready.setup.left.port == "tl"
        result = valid(lambda: run_on_ports(ready, names))
    for counts in result.directions().values():
        assert counts.lost == 0


def test_several_queues_of_a_kernel_port_lose_nothing_between_them() -> None:
    """The kernel spreads what arrives over packet sockets; ARP is answered whichever it comes to."""
    with bench("kernel-ipv4") as ready:
        result = valid(lambda: run_on_ports(ready, {}, queues=3))
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert (counts.duplicates, counts.corrupted, counts.stale) == (0, 0, 0)


def test_a_kernel_port_with_too_few_queues_is_refused() -> None:
    offer = "interface tl of the left port offers 1 receive and 1 transmit"
    with bench("kernel-ipv4") as ready, pytest.raises(TesterError, match=offer) as caught:
        run_on_ports(ready, {"left": "af_xdp:tl", "right": "af_xdp:tr"}, queues=2)
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "engine.queues")


def test_delays_that_end_at_receive_time_stamps_are_without_the_wait_for_the_poll() -> None:
    """libpcap has the kernel's time of each frame, and frames only after a while."""
    names = {
        side: f"vdev:net_pcap_{side},rx_iface_in={interface},tx_iface={interface}"
        for side, interface in (("left", "tl"), ("right", "tr"))
    }
    medians_us = {}
    for offloads in ([], ["receive_timestamps"]):
        with bench("kernel-ipv4") as ready:
            result = valid(
                lambda ready=ready, offloads=offloads: run_on_ports(ready, names, Stamping.EVERY, offloads=offloads)
            )
        assert result.forward is not None
        assert result.forward.delay_us is not None
        medians_us[bool(offloads)] = result.forward.delay_us.p50
        arrivals = result.forward.receive_timestamps
        assert (arrivals and (arrivals.by_nic, arrivals.by_poll)) == (
            (result.forward.stamped_received, 0) if offloads else None
        )
    assert 0 < medians_us[True] < medians_us[False]


def run_on_ports(
    ready: Bench, names: dict[str, str], stamping: Stamping = Stamping.NONE, **parameters: Any
) -> TrialResult:
    """A slow trial on other ports of the same lab, opened with other parameters."""
    from dutperf.engine.client import EngineCommand, EngineTester
    from dutperf.setup.ports import open_request
    from plans import make_trial

    request = open_request(ready.setup, 1518) | parameters
    for side, name in names.items():
        request[side]["port"] = name
    ready.tester.close()
    with EngineTester(EngineCommand.find(netns=ready.setup.engine.netns), request) as tester:
        trial = make_trial(ready.setup, Usual(duration_s=0.5, drain_s=0.3), 84, SLOW_FPS, 1)
        return tester.run(trial.model_copy(update={"stamping": stamping}))


@pytest.mark.parametrize("size", [84, 128, 1518])
@pytest.mark.parametrize("mix", [(2, 2), (10, 9), (2, 1), (2, 0)])
def test_tayga_translates_the_foreground_and_routes_the_background(
    translator: Bench, size: int, mix: tuple[int, int]
) -> None:
    n, m = mix
    result = valid(lambda: translator.run(SLOW_FPS, frame_sizes=[size], foreground=f"{n}:{m}"))
    for counts in result.directions().values():
        assert counts.lost == 0
        assert (counts.foreground_received, counts.background_received) == (1000 * m // n, 1000 - 1000 * m // n)


def count_forwarded(dut: Bench, match: str, run: Callable[[], TrialResult]) -> tuple[int, TrialResult]:
    """How many test frames the DUT's kernel forwards while ``run`` runs, of those that ``match``
    (nftables) names; and the trial's result."""
    rule = f"{match} udp dport 1-65535 counter"
    former = "table inet count {}\ndelete table inet count\n"
    ruleset = f"{former}table inet count {{\nchain forward {{\ntype filter hook forward priority 0\n{rule}\n}}\n}}\n"
    subprocess.run(["ip", "netns", "exec", dut.dut_netns, "nft", "-f", "-"], input=ruleset, text=True, check=True)
    result = run()
    listing = dut.in_dut("nft", "list", "chain", "inet", "count", "forward")
    return int(listing.partition("counter packets ")[2].split()[0]), result


def test_tayga_was_given_exactly_what_was_sent(translator: Bench) -> None:
    before = translator.link_counters("nat64")
    forwarded, result = count_forwarded(translator, 'oifname "nat64"', lambda: translator.run(SLOW_FPS))
    assert forwarded == sent(result)
    assert translator.link_counters("nat64")["tx"]["dropped"] == before["tx"]["dropped"]


def test_tayga_gave_back_exactly_what_was_received(translator: Bench) -> None:
    forwarded, result = count_forwarded(translator, 'iifname "nat64"', lambda: translator.run(SLOW_FPS))
    assert forwarded == sum(counts.received for counts in result.directions().values())


def test_the_kernel_forwarded_exactly_what_was_sent(router: Bench) -> None:
    forwarded, result = count_forwarded(router, "", lambda: router.run(SLOW_FPS))
    assert forwarded == sent(result)
    assert all(counts.dut_input_drops == 0 for counts in result.directions().values())


def test_above_the_routers_limit_every_loss_is_the_routers() -> None:
    """`limit rate` lets through its rate and its burst: known truth."""
    with bench("kernel-ipv4", {"limit_fps": "5000", "burst": "100"}) as ready:
        result = valid(lambda: ready.run(20_000, directions="forward", duration_s=1), LOSS_IS_CERTAIN)
    assert result.forward is not None
    assert result.forward.received == pytest.approx(5_100, rel=0.01)


@pytest.mark.long
def test_random_loss_is_measured() -> None:
    with bench("kernel-ipv4", {"loss": "0.01"}) as ready:
        result = valid(lambda: ready.run(20_000, directions="forward", duration_s=1), LOSS_IS_CERTAIN)
    assert result.forward is not None
    assert 120 <= result.forward.lost <= 285  # 200 expected, 99.99 % of the time within six standard deviations


def test_a_stopped_engine_is_no_loss_of_the_dut(router: Bench) -> None:
    result = router.run_while(lambda: router.pause_engine(0.2), 0.4, 20_000, duration_s=1)
    assert result.verdict is Verdict.INVALID
    assert "sender_late" in causes(result)
    assert any("ms late" in cause.text for cause in result.causes)


def test_a_receive_ring_too_small_is_no_loss_of_the_dut() -> None:
    with bench("kernel-ipv4", receive_ring=8) as ready:
        result = ready.run(100_000, duration_s=1, directions="forward")
    assert result.forward is not None
    assert result.forward.lost > 0
    assert result.verdict is Verdict.INVALID
    assert result.forward.tester_drops.get("kernel_socket", 0) > 0


def test_a_rate_beyond_reach_is_no_loss_of_the_dut(router: Bench) -> None:
    result = router.run(50_000_000)
    assert result.verdict is Verdict.INVALID
    assert "unsent" in causes(result)


def test_a_dut_interface_that_is_down_is_not_the_testers_loss(router: Bench) -> None:
    """The DUT has no route then, and says so: that is the only thing that may be said against the trial."""
    router.in_dut("ip", "link", "set", "dr", "down")
    result = until(
        lambda: router.run(SLOW_FPS, directions="forward"),
        lambda result: causes(result) <= {"icmp_errors", *LOSS_IS_CERTAIN},
    )
    assert result.forward is not None
    assert (result.forward.sent, result.forward.received) == (1000, 0)
    assert not result.link_up.right
    assert not result.dut_answered.right


def test_a_gateway_that_was_killed_is_the_duts_loss(tayga: Bench) -> None:
    assert valid(lambda: tayga.run(SLOW_FPS)).worst_loss_ratio == 0
    os.kill(tayga.tayga(), signal.SIGKILL)
    result = valid(lambda: tayga.run(SLOW_FPS), LOSS_IS_CERTAIN)
    for counts in result.directions().values():
        assert counts.received == 0


def test_of_two_gateways_in_a_row_the_one_that_was_killed_is_named() -> None:
    with bench("tayga-464xlat") as ready:
        row = dut.of_setup(ready.setup)
        lossless = until(  # see LOST_BY_DUT
            lambda: row.losses_during(lambda: ready.run(SLOW_FPS, foreground="2:1")),
            lambda one: one.verdict is Verdict.VALID and not one.worst_loss_ratio,
            lambda one: f"{one.causes} {one.dut_losses}",
        )
        assert lossless.dut_losses == {Direction.FORWARD: {}, Direction.REVERSE: {}}
        assert ready.setup.engine.dut_netns is not None
        os.kill(ready.tayga(ready.setup.engine.dut_netns[1]), signal.SIGKILL)
        result = valid(lambda: row.losses_during(lambda: ready.run(SLOW_FPS)), LOSS_IS_CERTAIN)
    assert [counts.received for counts in result.directions().values()] == [0, 0]
    assert result.dut_losses == {way: {"PLAT: not_forwarded": 1000} for way in (Direction.FORWARD, Direction.REVERSE)}


def test_an_engine_that_dies_aborts_its_trial_only(router: Bench) -> None:
    aborted = router.run_while(lambda: os.kill(router.engine(), signal.SIGKILL), 0.3, SLOW_FPS)
    assert aborted.verdict is Verdict.ABORTED
    assert causes(aborted) == {"engine_died"}
    assert valid(lambda: router.run(SLOW_FPS)).worst_loss_ratio == 0
