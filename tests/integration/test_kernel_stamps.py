# SPDX-License-Identifier: Apache-2.0
"""Delays by the kernel's time stamps, over a cable of namespaces, through the kernel's router and through a DUT whose
delay is known. Root only."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf.lab.netns import Namespace
from dutperf.lab.refdut import Properties, RefDut, Truth
from dutperf.model import Delays, DirectionCounts, Stamping, Tagged, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.tester import TesterError
from plans import make_trial
from printed import printed
from undisturbed import until, valid

from .measuring import Bench, bench, bench_on
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
        stamps = counts.stamps
        assert stamps is not None
        assert (stamps.both, stamps.missing, stamps.impossible) == (stamped, 0, 0)
        assert str(counts.clocks).startswith("CLOCK_REALTIME (kernel) at both ends")
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
        assert counts.stamps is not None
        assert (counts.stamps.both, counts.stamps.missing) == (200, 0)


def test_the_loops_of_the_tester_are_not_in_the_delays() -> None:
    with bench("loopback", kind="af_packet") as ready:
        medians_us = {
            stamps: delays(next(iter(valid(lambda stamps=stamps: run(ready, stamps=stamps)).directions().values()))).p50
            for stamps in (None, "kernel")
        }
    assert 0 < medians_us["kernel"] < medians_us[None] / 2


@pytest.mark.parametrize(
    ("rate_fps", "pattern", "copies"),
    [(2_000, "constant", False), (20_000, "constant", True), (2_000, "bursts:500", True)],
    ids=["slow", "fast", "long bursts"],
)
def test_a_port_copies_no_frames_unless_its_queue_might_overflow(rate_fps: int, pattern: str, copies: bool) -> None:
    """With an XDP program a veth has a queue of its own, and copies each frame between the kernel's stamps."""
    seen = []

    def look() -> None:
        shown = subprocess.run(
            ["ip", "-n", ready.tester_netns, "-d", "link"], check=True, capture_output=True, text=True
        )
        seen.append("prog/xdp" in shown.stdout)

    with bench("loopback", kind="af_packet") as ready:
        conditions = Usual(duration_s=1.5, drain_s=0.2, pattern=pattern)
        trial = make_trial(ready.setup, conditions, 128, rate_fps, 1).model_copy(update={"stamps": "kernel"} | TAGGED)
        timer = threading.Timer(0.8, look)
        timer.start()
        ready.tester.run(trial)
        timer.join()
        look()
    assert seen == [copies, True]


def test_nothing_but_the_trial_is_dropped_by_the_dut() -> None:
    """A frame proves before the trial that the kernel stamps."""

    def dropped() -> list[int]:
        return [ready.link_counters(port)["rx"]["dropped"] for port in ("dl", "dr")]

    with bench("kernel-ipv4", kind="af_packet") as ready:
        run(ready)
        before = dropped()
        valid(lambda: run(ready))
        assert dropped() == before


@pytest.mark.long
def test_pairs_of_loops_and_kernel_differ_in_typical_delay_and_tail() -> None:
    """A veth that copied each frame between the kernel's stamps had a tail as long as that of the loops."""
    with bench("loopback", kind="af_packet") as ready:

        def slower(stamps: str | None) -> Delays:
            trial = make_trial(ready.setup, Usual(duration_s=2, drain_s=0.3), 84, 10_000, 1)
            members = {"stamps": stamps} | EVERY
            result = valid(lambda: ready.tester.run(trial.model_copy(update=members)))
            return max((delays(counts) for counts in result.directions().values()), key=lambda one: one.p999)

        pairs = [(slower(None), slower("kernel")) for _ in range(20)]
    assert all(by_kernel.p50 <= by_loops.p50 / 2 for by_loops, by_kernel in pairs)
    tails = sorted(by_kernel.p999 / by_loops.p999 for by_loops, by_kernel in pairs)
    assert tails[10] < 0.1
    assert tails[17] <= 1 / 3, "of 20, with two in which others had the machine for long"


def excess_us(result: TrialResult, truth: Truth) -> float:
    """By which the median delay of the worse direction differs from the DUT's own."""
    ways = zip(result.directions().values(), (truth.forward, truth.reverse), strict=True)
    return max(abs(delays(counts).p50 - own.delay_us.p50) for counts, own in ways)


@pytest.mark.parametrize(
    ("delay_ms", "times"),
    [case for delay_ms in (0.1, 1, 20) for case in ((delay_ms, 1), pytest.param(delay_ms, 10, marks=pytest.mark.long))],
)
def test_a_known_delay_is_read_with_load_in_both_directions(delay_ms: float, times: int) -> None:
    """The DUT polls its ports, which is in no time of its own: what it did not see yet is not in its delays."""
    with bench("refdut-ipv4", kind="af_packet") as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))

        def measure() -> tuple[TrialResult, Truth]:
            dut.configure(Properties(delay_ms=delay_ms))
            return run(ready, **EVERY), dut.counters()

        def right(measured: tuple[TrialResult, Truth]) -> bool:
            return measured[0].verdict is Verdict.VALID and excess_us(*measured) < 30 + CLOCK * delay_ms

        results = [until(measure, right)[0] for _ in range(times)]
    for result in results:
        for counts in result.directions().values():
            assert delays(counts).min >= delay_ms * (1000 - CLOCK)


def test_lost_doubled_and_reordered_frames_get_no_delay_of_another() -> None:
    with bench("refdut-ipv4", kind="af_packet") as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))
        dut.configure(Properties(delay_ms=1, loss=0.05, duplicate_every=100, reorder_every=50))
        result = until(lambda: run(ready, **EVERY), lambda one: sum(c.lost for c in one.directions().values()) > 20)
    for counts in result.directions().values():
        assert counts.stamps is not None
        assert counts.duplicates > 0
        assert counts.out_of_order > 0
        assert (counts.stamps.both, counts.stamps.missing) == (counts.stamped_received, 0)
        assert delays(counts).min >= 1000 - CLOCK


def test_ports_named_by_their_interface_alone_are_opened_by_packet_sockets(tmp_path: Path) -> None:
    trials = ("--rate", "1000", "--duration", "1", "--drain", "0.2", "--repetitions", "1", "--frame-sizes", "84")
    done = dutperf(
        "latency", "--lab", "loopback", "--stamps", "kernel", *trials, "--json", "--out", str(tmp_path / "out")
    )
    [point] = printed(done)["points"]
    assert point["stamps"]["both"] > 0


def test_ports_named_by_their_interface_alone_are_tried_for_stamps_of_the_card(tmp_path: Path) -> None:
    trials = ("--rate", "1000", "--duration", "1", "--repetitions", "1", "--frame-sizes", "84")
    done = dutperf("latency", "--lab", "loopback", "--stamps", "card", *trials, "--out", str(tmp_path / "out"))
    assert "the driver veth of" in done.stderr
    assert "lets no card stamp sent and received frames" in done.stderr


def test_ports_that_the_kernel_does_not_time_are_refused() -> None:
    refusal = "need ports named af_packet:"
    with bench("loopback", kind="af_xdp") as ready, pytest.raises(TesterError, match=refusal) as caught:
        run(ready)
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")


def test_the_loops_do_it_where_the_kernel_cannot_and_the_result_says_why() -> None:
    why = "the kernel's stamps need ports named af_packet:INTERFACE, and the left port is none"
    with bench("loopback", kind="af_xdp") as ready:
        result = valid(lambda: run(ready, stamps="auto"))
    assert result.loop_stamps_because == why
    for counts in result.directions().values():
        assert (counts.stamps, delays(counts).frames) == (None, 200)


@pytest.mark.parametrize("tells", [True, False], ids=["ethtool tells", "ethtool does not tell"])
def test_a_trial_that_may_choose_has_the_kernels_stamps(
    tells: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tells:
        program = tmp_path / "ethtool"
        program.write_text(f'#!/bin/sh\n[ "$1" = -T ] || exec {shutil.which("ethtool")} "$@"\nexit 1\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    trial = ("--rate", "1000", "--duration", "0.5", "--drain", "0.2", "--frame-size", "84")
    report = printed(dutperf("trial", "--lab", "loopback", "--stamps", "auto", *trial, "--json"))
    assert "loop_stamps_because" not in report
    assert report["forward"]["stamps"]["both"] == report["forward"]["stamped_received"] > 0


@pytest.fixture
def macvlans() -> Iterator[dict[str, Any]]:
    """Ports that are connected by the driver of both: it hands their frames over without a stamp."""
    tester = Namespace(f"macvlan-{secrets.token_hex(3)}")
    tester.create()
    try:
        tester.ip("link add below type veth peer name far", "link set below up", "link set far up")
        for name in ("m0", "m1"):
            tester.ip(f"link add link below name {name} type macvlan mode bridge", f"link set {name} up")
        ends = {"left": ("m0", 0, 18), "right": ("m1", 1, 19)}
        yield {
            **{
                side: {"version": 4, "port": f"af_packet:{name}", "ipv4": f"198.{net}.0.{1 + number}/16"}
                for side, (name, number, net) in ends.items()
            },
            "engine": {"netns": tester.name},
        }
    finally:
        tester.delete()


def test_stamps_that_a_driver_promises_and_does_not_give_are_noticed_before_the_trial(macvlans: dict[str, Any]) -> None:
    promise = r"the driver macvlan of m0, the left port, promises the kernel's stamps, but a frame to .* left without"
    with bench_on(macvlans) as ready:
        with pytest.raises(TesterError, match=promise) as caught:
            run(ready)
        result = valid(lambda: run(ready, stamps="auto"))
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")
    assert result.loop_stamps_because is not None
    assert "promises the kernel's stamps" in result.loop_stamps_because
    assert all(delays(counts).frames == 200 for counts in result.directions().values())


def test_ports_without_a_card_have_no_stamps_of_it() -> None:
    refusal = (
        "^the driver veth of .*, the left port, lets no card stamp sent and received frames: leave stamps at kernel"
    )
    with bench("loopback", kind="af_packet") as ready, pytest.raises(TesterError, match=refusal) as caught:
        run(ready, stamps="card")
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")
