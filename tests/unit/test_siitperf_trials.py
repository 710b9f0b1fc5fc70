# SPDX-License-Identifier: Apache-2.0
"""What siitperf's commands make of it: who sends what to whom, on which ports and cores."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import pytest

from dutperf.machine import pci
from dutperf.model import Cause, FieldMode, Trial, TrialResult, Verdict
from dutperf.siitperf import commands, setup
from dutperf.siitperf.configuration import InputError, parse
from dutperf.siitperf.variables import Variables
from dutperf.tester import ProgressCallback
from siitperf_files import MACS, ROUTER, TRANSLATOR, with_lines
from siitperf_plans import RINGS, VETHS, WITH_CORES, plan


def frames(text: str, words: str = "84 1000 1 100 2 2") -> dict[str, Any]:
    """Version, size, source and destination of what each direction sends."""
    streams = plan(words=words, settings=parse(text)).trial.streams()
    return {
        str(direction): [
            (one.version, one.size, str(one.source), str(one.destination))
            for one in (stream.foreground, stream.background)
            if one
        ]
        for direction, stream in streams.items()
    }


L4, R4, L6, R6 = "198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:8000::2"
BACKGROUND = ((6, 128, L6, R6), (6, 128, R6, L6))


def test_who_sends_what_to_whom() -> None:
    there, back = (6, 128, L6, "2001:2:0:1000::2"), (4, 108, R4, "198.18.0.2")
    assert frames(TRANSLATOR, "128 1 1 0 2 2") == {"forward": [there], "reverse": [back]}
    assert frames(TRANSLATOR, "128 1 1 0 2 1") == {"forward": [there, BACKGROUND[0]], "reverse": [back, BACKGROUND[1]]}
    assert frames(ROUTER, "128 1 1 0 2 2") == {"forward": [(4, 108, L4, R4)], "reverse": [(4, 108, R4, L4)]}
    assert frames(ROUTER, "128 1 1 0 2 1") == {
        "forward": [(4, 108, L4, R4), BACKGROUND[0]],
        "reverse": [(4, 108, R4, L4), BACKGROUND[1]],
    }
    assert frames(ROUTER, "1538 1 1 0 2 2")["forward"] == [(4, 1518, L4, R4)]
    assert frames(with_lines(TRANSLATOR, "Forward 0")).keys() == {"reverse"}


def test_ports_networks_and_varying_addresses_are_those_of_their_direction() -> None:
    lines = [
        "Fwd-var-sport 1",
        "Fwd-sport-min 5000",
        "Fwd-sport-max 6000",
        "Fwd-var-dport 0",
        "Rev-var-dport 2",
        "Rev-dport-max 80",
        "Num-R-Nets 256",
    ]
    trial = plan(settings=parse(with_lines(TRANSLATOR, *lines))).trial
    assert trial.forward is not None
    assert trial.reverse is not None
    fields = [
        (one.mode, one.min, one.max)
        for stream in (trial.forward, trial.reverse)
        for one in (stream.source_port, stream.destination_port)
    ]
    assert fields == [
        (FieldMode.INCREASING, 5000, 6000),
        (FieldMode.FIXED, 7, 7),
        (FieldMode.RANDOM, 1024, 65535),
        (FieldMode.DECREASING, 1, 80),
    ]
    assert (trial.forward.networks, trial.reverse.networks) == (256, 1)
    vary = plan(
        settings=parse(TRANSLATOR + "IP-L-var 3\nIP-L-min 0x10\nIP-L-max 32\nIPv4-L-offset 1\nIPv6-L-offset 6\n")
    ).trial
    assert vary.forward is not None
    assert vary.reverse is not None
    assert vary.forward.source_address == vary.reverse.destination_address
    assert vary.forward.source_address is not None
    assert vary.forward.source_address.model_dump() == {
        "mode": FieldMode.RANDOM,
        "min": 16,
        "max": 32,
        "offset4": 1,
        "offset6": 6,
    }
    assert (vary.forward.destination_address, vary.reverse.source_address) == (None, None)


GATEWAYS: list[tuple[str, str, str, tuple[str, ...], Any, Any]] = [
    ("the first address", TRANSLATOR, "2 2", (), (None, "2001:2::1"), ("198.19.0.1", None)),
    ("with background", TRANSLATOR, "2 1", (), (None, "2001:2::1"), ("198.19.0.1", "2001:2:0:8000::1")),
    (
        "the tester is the first",
        with_lines(TRANSLATOR, "IPv4-R-Real 198.19.0.1"),
        "2 2",
        (),
        (None, "2001:2::1"),
        ("198.19.0.2", None),
    ),
    ("named", TRANSLATOR, "2 2", ("198.19.0.77",), (None, "2001:2::1"), ("198.19.0.77", None)),
    ("MAC addresses are given", TRANSLATOR + MACS, "2 1", (), (None, None), (None, None)),
]


@pytest.mark.parametrize(
    ("text", "mix", "gateways", "left", "right"), [row[1:] for row in GATEWAYS], ids=[row[0] for row in GATEWAYS]
)
def test_the_dut_is_asked_for_where_its_mac_address_is_missing(
    text: str, mix: str, gateways: tuple[str, ...], left: Any, right: Any
) -> None:
    variables = replace(VETHS, gateways=tuple(map(ip_address, gateways)))
    made = plan(words=f"84 1 1 0 {mix}", settings=parse(text), variables=variables).setup
    assert [tuple(one and str(one) for one in (side.gateway4, side.gateway6)) for side in (made.left, made.right)] == [
        left,
        right,
    ]
    assert (made.left.gateway_mac is not None) == ("MAC-L-DUT" in text)


def test_nobody_is_asked_in_a_ring() -> None:
    assert not plan(variables=RINGS).setup.left.has_gateway


CONTRADICTIONS: list[tuple[str, str, Variables, str, str]] = [
    (
        "a gateway nowhere",
        TRANSLATOR,
        replace(VETHS, gateways=(IPv4Address("198.20.0.1"),)),
        "DUTPERF_GATEWAYS",
        "198.20.0.1 is not used",
    ),
    (
        "a gateway in vain",
        TRANSLATOR + MACS,
        replace(VETHS, gateways=(IPv4Address("198.19.0.1"),)),
        "DUTPERF_GATEWAYS",
        "MAC-x-DUT",
    ),
    (
        "a gateway in a ring",
        ROUTER,
        replace(RINGS, gateways=(IPv4Address("198.19.0.1"),)),
        "DUTPERF_GATEWAYS",
        "198.19.0.1 is not used",
    ),
    (
        "one address for both",
        with_lines(ROUTER, "IPv4-R-Real 198.18.0.2"),
        VETHS,
        "IPv4-R-Real",
        "is already the address of left",
    ),
    (
        "a group's address",
        with_lines(ROUTER, "IPv4-R-Real 224.0.0.1"),
        VETHS,
        "IPv4-R-Real",
        "not a valid host address",
    ),
    (
        "one port for both",
        ROUTER,
        replace(VETHS, ports=("af_packet:t", "af_packet:t")),
        "DUTPERF_PORTS",
        "is already the port of left",
    ),
    (
        "a MAC address on one side in a ring",
        ROUTER + "MAC-L-DUT 02:00:00:00:00:0a\n",
        RINGS,
        "MAC-R-DUT",
        "have a DUT between them",
    ),
    (
        "no core",
        with_lines(TRANSLATOR, "CPU-R-Recv"),
        WITH_CORES,
        "CPU-R-Recv",
        "is missing: set the core, or DUTPERF_CORES=auto",
    ),
    (
        "a core twice",
        with_lines(TRANSLATOR, "CPU-R-Recv 2"),
        WITH_CORES,
        "CPU-R-Recv",
        "core 2 is already that of CPU-L-Send",
    ),
]


@pytest.mark.parametrize(
    ("text", "variables", "name", "message"),
    [row[1:] for row in CONTRADICTIONS],
    ids=[row[0] for row in CONTRADICTIONS],
)
def test_contradictions(text: str, variables: Variables, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(settings=parse(text), variables=variables)
    assert caught.value.name == name
    assert message in caught.value.message


CORES = [("", [2, 4, 6, 8]), ("Reverse 0\n", [2, 4]), ("Forward 0\n", [8, 6])]


@pytest.mark.parametrize(("lines", "expected"), CORES)
def test_cores_in_the_order_in_which_the_engine_places_roles(
    lines: str, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.os, "sched_getaffinity", lambda _pid: {2, 4, 6, 8})
    made = plan(settings=parse(TRANSLATOR + lines), variables=WITH_CORES).setup
    assert list(made.engine.cores or ()) == expected


def test_a_core_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "sched_getaffinity", lambda _pid: {2, 4, 8})
    with pytest.raises(
        InputError, match="core 6 does not exist here or is not allowed; set DUTPERF_CORES=auto"
    ) as caught:
        plan(variables=WITH_CORES)
    assert caught.value.name == "CPU-R-Send"


def test_ports_are_the_first_two_cards_that_dpdk_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address, kind, driver in (
        ("0000:81:00.0", "0x020000", "vfio-pci"),
        ("0000:01:00.1", "0x020000", "igb_uio"),
        ("0000:01:00.0", "0x020000", "ixgbe"),
        ("0000:00:02.0", "0x010802", "vfio-pci"),
    ):
        device = tmp_path / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "class").write_text(kind + "\n")
        (tmp_path / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers" / driver)
    assert pci.dpdk_ports(tmp_path) == ["0000:01:00.1", "0000:81:00.0"]
    monkeypatch.setattr(setup.pci, "dpdk_ports", lambda: ["0000:01:00.1", "0000:81:00.0", "0000:82:00.0"])
    made = plan(settings=parse(TRANSLATOR + MACS), variables=replace(VETHS, ports=None)).setup
    assert (made.left.port, made.right.port) == ("0000:01:00.1", "0000:81:00.0")
    monkeypatch.setattr(setup.pci, "dpdk_ports", lambda: ["0000:01:00.1"])
    with pytest.raises(InputError, match=r"DUTPERF_PORTS: is not set, and DPDK has 1 port\(s\) here"):
        plan(variables=replace(VETHS, ports=None))


def test_the_trial_of_each_command() -> None:
    tp = plan(words="84 1000 60 2000 2 2").trial
    assert (tp.trial, tp.seed, tp.duration_ns, tp.drain_ns, tp.rest_ns) == (1, 7, 60 * 10**9, 2 * 10**9, 2 * 10**9)
    lat = plan(commands.LAT, "84 1000 60 2000 2 2 10 500").trial
    assert lat.tagged is not None
    assert (lat.tagged.count, lat.tagged.after_ns, lat.lost_delay_ns) == (500, 10 * 10**9, 52 * 10**9)
    pdv = plan(commands.PDV, "84 1000 60 2000 2 2 0").trial
    assert (pdv.stamping, pdv.lost_delay_ns, pdv.frame_timeout_ns) == ("every", 62 * 10**9, None)
    assert plan(commands.PDV, "84 1000 60 2000 2 2 5").trial.frame_timeout_ns == 5_000_000


def test_without_a_seed_each_command_has_new_frames_and_says_which() -> None:
    planned = [plan(variables=replace(VETHS, seed=None)) for _ in range(20)]
    assert len({(one.trial.seed, one.trial.trial) for one in planned}) == 20
    for one in planned:
        assert f"seed is {one.trial.seed} " in one.remarks[-1]
        again = plan(variables=replace(VETHS, seed=one.trial.seed))
        assert again.trial.model_copy(update={"trial": one.trial.trial}) == one.trial


class Disturbed:
    """A tester (:class:`dutperf.tester.Tester`) whose first trials are not valid."""

    def __init__(self, disturbed: int, verdict: Verdict) -> None:
        self.trials: list[Trial] = []
        self._disturbed, self._verdict = disturbed, verdict

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        del on_progress
        self.trials.append(trial)
        cause = Cause(code="sending_time", text="Error: the test is invalid")
        if len(self.trials) > self._disturbed:
            return TrialResult(trial=trial.trial, verdict=Verdict.VALID)
        return TrialResult(trial=trial.trial, verdict=self._verdict, causes=(cause,))

    def environment(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


REPEATS = [
    # disturbed trials, repeats that are granted, trials that are run, the verdict
    (0, 3, 1, Verdict.VALID),
    (2, 3, 3, Verdict.VALID),
    (3, 3, 4, Verdict.VALID),
    (4, 3, 4, Verdict.INVALID),
    (1, 0, 1, Verdict.INVALID),
]


@pytest.mark.parametrize(("disturbed", "repeats", "run", "verdict"), REPEATS)
def test_a_trial_that_is_not_valid_is_repeated_as_often_as_granted(
    disturbed: int, repeats: int, run: int, verdict: Verdict, capsys: pytest.CaptureFixture[str]
) -> None:
    tester = Disturbed(disturbed, Verdict.INVALID)
    planned = plan(variables=replace(VETHS, repeats=repeats))
    result = commands.until_valid(tester, planned)
    said = capsys.readouterr()
    assert (result.verdict, len(tester.trials)) == (verdict, run)
    assert [trial.trial for trial in tester.trials] == list(range(1, run + 1))
    assert {trial.model_copy(update={"trial": 0}) for trial in tester.trials} == {
        planned.trial.model_copy(update={"trial": 0})
    }
    assert said.out == ""
    assert said.err.count("(sending time); repeat") == run - 1
    assert not any(word in said.err for word in ("invalid", "Error", "Warning"))  # scripts look for them


def test_a_trial_that_was_aborted_is_repeated_too() -> None:
    assert (
        commands.until_valid(Disturbed(1, Verdict.ABORTED), plan(variables=replace(VETHS, repeats=1))).verdict
        is Verdict.VALID
    )


def test_the_number_of_a_repeat_is_one_that_a_frame_can_carry() -> None:
    planned = plan(variables=replace(VETHS, repeats=1))
    tester = Disturbed(1, Verdict.INVALID)
    commands.until_valid(tester, replace(planned, trial=planned.trial.model_copy(update={"trial": 65535})))
    assert [trial.trial for trial in tester.trials] == [65535, 0]


def test_what_the_file_says_without_effect_is_told() -> None:
    remarks = plan(settings=parse(TRANSLATOR + "Enumerate-ports 1\nPromisc 0\n")).remarks
    assert ["Enumerate-ports" in remarks[0], "Promisc" in remarks[1], len(remarks)] == [True, True, 2]


def test_more_frames_than_a_trial_can_have_are_an_input_error() -> None:
    with pytest.raises(InputError, match=r"^DURATION: 3,600,000,000,000 frames per direction are more"):
        plan(words="84 1000000000 3600 100 2 2")
