# SPDX-License-Identifier: Apache-2.0
"""Delays by the kernel's time stamps, over a cable of namespaces, through the kernel's router and through a DUT whose
delay is known. Root only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dutperf.lab.refdut import Properties, RefDut, Truth
from dutperf.model import Delays, DirectionCounts, Stamping, Tagged, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.tester import TesterError
from plans import make_trial
from printed import printed
from undisturbed import until, valid

from .measuring import Bench, bench
from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.alone]
TAGGED = {"stamping": Stamping.TAGGED, "tagged": Tagged(count=200, after_ns=0)}
CLOCK = 0.5
"""Of a ms, in us: the kernel corrects its clock by up to 500 ppm."""
EVERY = {"stamping": Stamping.EVERY}


def run(ready: Bench, stamps: str | None = "kernel", **members: Any) -> TrialResult:
    trial = make_trial(ready.setup, Usual(duration_s=0.5, drain_s=0.3), 128, 2_000, 1)
    return ready.tester.run(trial.model_copy(update={"stamps": stamps} | (members or TAGGED)))


def delays(counts: DirectionCounts) -> Delays:
    assert counts.delay_us is not None
    return counts.delay_us


@pytest.mark.parametrize(("members", "stamped"), [(TAGGED, 200), (EVERY, 1_000)])
def test_each_stamped_frame_has_a_delay_by_the_kernel(members: dict[str, Any], stamped: int) -> None:
    with bench("kernel-ipv4", kind="af_packet") as ready:
        result = valid(lambda: run(ready, **members))
    for counts in result.directions().values():
        stamps = counts.kernel_stamps
        assert stamps is not None
        assert (stamps.both, stamps.missing, stamps.impossible) == (stamped, 0, 0)
        assert counts.stamped_sent == counts.stamped_received == delays(counts).frames == stamped
        assert (counts.sent, counts.lost, counts.out_of_order) == (1_000, 0, 0)


@pytest.mark.parametrize(
    ("lab", "frame"),
    [
        ("kernel-ipv4", "ip/udp/vxlan/eth/ipv6/dest_options(size=200)/udp"),
        ("kernel-ipv4", "ip/udp(checksum=0x1234)"),
        ("loopback", "vlan(id=100,type=0x88a8)/vlan(id=5)/ip(checksum=7)/udp"),
    ],
    ids=["behind long headers", "behind a wrong checksum", "behind a hidden tag and a wrong checksum"],
)
def test_any_tag_that_a_receiver_finds_is_found_in_the_socket_too(lab: str, frame: str) -> None:
    described = Usual(duration_s=0.5, drain_s=0.3, frame=frame)
    with bench(lab, kind="af_packet") as ready:
        trial = make_trial(ready.setup, described, 512, 2_000, 1).model_copy(update={"stamps": "kernel"} | TAGGED)
        result = valid(lambda: ready.tester.run(trial))
    for counts in result.directions().values():
        assert counts.kernel_stamps is not None
        assert (counts.kernel_stamps.both, counts.kernel_stamps.missing) == (200, 0)


def test_the_loops_of_the_tester_are_not_in_the_delays() -> None:
    with bench("loopback", kind="af_packet") as ready:
        medians_us = {
            stamps: delays(next(iter(valid(lambda stamps=stamps: run(ready, stamps=stamps)).directions().values()))).p50
            for stamps in (None, "kernel")
        }
    assert 0 < medians_us["kernel"] < medians_us[None] / 2


@pytest.mark.parametrize("delay_ms", [0.1, 1, 20])
def test_a_known_delay_is_read_with_load_in_both_directions(delay_ms: float) -> None:
    """The DUT polls its ports, which is in no time of its own: what it did not see yet is not in its delays."""
    with bench("refdut-ipv4", kind="af_packet") as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))

        def measure() -> tuple[TrialResult, Truth]:
            dut.configure(Properties(delay_ms=delay_ms))
            return run(ready, **EVERY), dut.counters()

        def excess_us(measured: tuple[TrialResult, Truth]) -> float:
            result, truth = measured
            ways = zip(result.directions().values(), (truth.forward, truth.reverse), strict=True)
            return max(abs(delays(counts).p50 - own.delay_us.p50) for counts, own in ways)

        def right(measured: tuple[TrialResult, Truth]) -> bool:
            return measured[0].verdict is Verdict.VALID and excess_us(measured) < 30 + CLOCK * delay_ms

        result, _ = until(measure, right)
    for counts in result.directions().values():
        assert delays(counts).min >= delay_ms * (1000 - CLOCK)


def test_lost_doubled_and_reordered_frames_get_no_delay_of_another() -> None:
    with bench("refdut-ipv4", kind="af_packet") as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))
        dut.configure(Properties(delay_ms=1, loss=0.05, duplicate_every=100, reorder_every=50))
        result = until(lambda: run(ready, **EVERY), lambda one: sum(c.lost for c in one.directions().values()) > 20)
    for counts in result.directions().values():
        assert counts.kernel_stamps is not None
        assert counts.duplicates > 0
        assert counts.out_of_order > 0
        assert (counts.kernel_stamps.both, counts.kernel_stamps.missing) == (counts.stamped_received, 0)
        assert delays(counts).min >= 1000 - CLOCK


def test_ports_named_by_their_interface_alone_are_opened_by_packet_sockets(tmp_path: Path) -> None:
    trials = ("--rate", "1000", "--duration", "1", "--drain", "0.2", "--repetitions", "1", "--frame-sizes", "84")
    done = dutperf(
        "latency", "--lab", "loopback", "--stamps", "kernel", *trials, "--json", "--out", str(tmp_path / "out")
    )
    [point] = printed(done)["points"]
    assert point["kernel_stamps"]["both"] > 0


def test_ports_that_the_kernel_does_not_time_are_refused() -> None:
    refusal = "needs ports named af_packet:"
    with bench("loopback", kind="af_xdp") as ready, pytest.raises(TesterError, match=refusal) as caught:
        run(ready)
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")
