# SPDX-License-Identifier: Apache-2.0
"""What is sent of a capture, and when; what cannot be sent is an error with its place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scapy.layers.inet import TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter

from command_line import dutperf, write
from dutperf.captures import CaptureError
from dutperf.judge.setup_faults import limit_of
from dutperf.judge.validity import judge
from dutperf.model import (
    Direction,
    LengthChanges,
    LimitedBy,
    MatchedByLength,
    Recorded,
    RecordedFrame,
    Recording,
    Replay,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.model.pattern import RecordedTimes
from dutperf.setup.configuration import ParameterError
from dutperf.traffic.replayed import ReplayError, Replaying, factor_of, length_changes_of, recording_of, trial_of
from plans import counts
from recordings import MACS, V4, V6, capture, udp


def recording(times_ns: Sequence[int], **frame: Any) -> Recording:
    one = Recording()
    for at_ns in times_ns:
        one.append(RecordedFrame(at_ns, **({"data": bytes(60), "destination_mac": "next_hop4"} | frame)))
    return one


def test_frames_are_sent_as_they_are(tmp_path: Path) -> None:
    packets = [udp(18), udp(900, V6), Ether(dst="ff:ff:ff:ff:ff:ff", src=MACS["src"]) / ARP(), udp(5)]
    sent = recording_of(capture(tmp_path / "a.pcap", packets), Replaying())
    frames = [sent[place] for place in range(len(sent))]
    assert [one.data for one in frames] == [bytes(packet).ljust(60, b"\0") for packet in packets]
    assert [one.destination_mac for one in frames] == ["next_hop4", "next_hop6", "given", "next_hop4"]
    assert {one.source_mac for one in frames} == {"port"}
    assert {one.tag_at for one in frames} == {None}
    assert (sent.longest, sent.longest_number) == (900 + 62 + 4, 2)


def test_an_ipv6_packet_in_vlans_has_the_next_hop_of_ipv6(tmp_path: Path) -> None:
    packet = Ether(**MACS) / Dot1Q(vlan=5) / Dot1Q(vlan=6) / V6 / UDP() / Raw(bytes(50))
    assert recording_of(capture(tmp_path / "a.pcap", [packet]), Replaying())[0].destination_mac == "next_hop6"


def test_addresses_may_be_kept(tmp_path: Path) -> None:
    sent = recording_of(capture(tmp_path / "a.pcap", [udp(), udp(100, V6)]), Replaying(macs="keep"))
    assert {(sent[place].source_mac, sent[place].destination_mac) for place in (0, 1)} == {("given", "given")}


def test_frames_with_room_get_a_tag(tmp_path: Path) -> None:
    packets = [udp(100), udp(10), Ether(**MACS) / V4 / TCP(flags="A"), udp(30, V6)]
    sent = recording_of(capture(tmp_path / "a.pcap", packets), Replaying(tag=True))
    assert [sent[place].tag_at for place in range(4)] == [14 + 20 + 8 + 80, None, None, 14 + 40 + 8 + 10]
    assert sent.tagged == 2


def test_a_frame_of_an_earlier_trial_gets_no_second_tag(tmp_path: Path) -> None:
    packet = udp(0) / Raw(bytes.fromhex("d75450ab00010001") + bytes(60))
    path = capture(tmp_path / "a.pcap", [udp(), packet])
    assert recording_of(path, Replaying()).tagged == 0
    with pytest.raises(ReplayError, match="frame 2 is a test frame"):
        recording_of(path, Replaying(tag=True))


@pytest.mark.parametrize(
    ("speed", "times_ns"),
    [
        ("1", [0, 3, 3, 1_000_000_001]),
        ("2", [0, 1, 1, 500_000_000]),
        ("0.5", [0, 6, 6, 2_000_000_002]),
        ("1/3", [0, 9, 9, 3_000_000_003]),
        ("1.5", [0, 2, 2, 666_666_667]),
    ],
)
def test_times_are_those_of_the_capture_by_the_speed(tmp_path: Path, speed: str, times_ns: list[int]) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 4, [0, 3, 3, 1_000_000_001])
    assert list(recording_of(path, Replaying(speed=speed)).times_ns) == times_ns


def test_with_a_rate_the_times_do_not_matter(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 3, [0, 5, 4])
    assert list(recording_of(path, Replaying(rate=1)).times_ns) == [0, 0, 0]


def cut(path: Path, size: int) -> Path:
    path.write_bytes(path.read_bytes()[:size])
    return path


DAY_NS = 86_400 * 10**9
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "nothing": (lambda path: cut(capture(path, []), 0), CaptureError, "is cut off in the header, at byte 0"),
    "no frames": (lambda path: capture(path, []), ReplayError, "has no frames"),
    "cut off": (lambda path: cut(capture(path, [udp(), udp()]), 300), CaptureError, "frame 2, at byte 300"),
    "backwards": (
        lambda path: capture(path, [udp()] * 3, [0, 5_000, 3_500]),
        ReplayError,
        "frame 3 is 0.000001500 s earlier than the one before: sort the capture (reordercap), or give a rate",
    ),
    "another link": (lambda path: capture(path, [udp()], link=101), CaptureError, "link type 101 is not Ethernet"),
    "too long": (lambda path: capture(path, [udp(), udp(9171)]), ReplayError, "frame 2 has 9213 bytes"),
    "too short": (lambda path: capture(path, [udp(), b"12345"]), ReplayError, "frame 2 has 5 bytes"),
    "more than a day": (
        lambda path: capture(path, [udp()] * 2, [0, DAY_NS]),
        ReplayError,
        "frame 2 is due after more than a day: give a `duration_s`, a `speed` or a `rate`",
    ),
    "no file": (lambda path: path, CaptureError, "No such file"),
}


@pytest.mark.parametrize(("made", "error", "text"), BAD.values(), ids=BAD)
def test_what_cannot_be_sent_is_an_error_with_its_place(tmp_path: Path, made: Any, error: Any, text: str) -> None:
    path = made(tmp_path / "a.pcap")
    with pytest.raises(error) as raised:
        recording_of(path, Replaying())
    assert text in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_frame_that_the_capture_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    writer = PcapWriter(str(path), linktype=1)
    writer.write_header(None)
    writer.write_packet(bytes(udp())[:96], sec=1, usec=0, caplen=96, wirelen=142)
    writer.close()
    with pytest.raises(ReplayError, match="frame 1 has only 96 of its 142 bytes: capture whole frames"):
        recording_of(path, Replaying())


@given(st.lists(st.tuples(st.integers(0, 2**40), st.binary(min_size=60, max_size=90), st.sampled_from((None, 40)))))
def test_a_recording_holds_what_was_put_in(rows: list[tuple[int, bytes, int | None]]) -> None:
    frames = [RecordedFrame(at_ns, data, "given", "given", tag_at) for at_ns, data, tag_at in rows]
    kept = Recording()
    for frame in frames:
        kept.append(frame)
    assert [kept[place] for place in range(len(kept))] == frames
    loaded = [one for params in kept.loads() for one in params["frames"]]
    assert [(one["at_ns"], bytes.fromhex(one["bytes"]), one.get("tag_at")) for one in loaded] == rows


def test_a_long_recording_is_loaded_in_parts() -> None:
    """None is too long a line for the engine."""
    parts = list(recording(range(2000), data=bytes(1000)).loads())
    assert len(parts) > 1
    assert sum(len(part["frames"]) for part in parts) == 2000
    assert [part.get("append", False) for part in parts] == [False] + [True] * (len(parts) - 1)
    assert max(len(json.dumps(part)) for part in parts) < 1 << 20


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).map(sorted), st.integers(1, 30), st.integers(0, 400))
def test_frames_before_a_time_are_those_due_before_it(times_ns: list[int], gap_ns: int, after_ns: int) -> None:
    times = RecordedTimes(times_ns, times_ns[-1] + gap_ns)
    before = times.frames_before(after_ns)
    assert before == sum(times.due_ns(frame) < after_ns for frame in range(before + 2 * len(times_ns)))


TIMES_NS = (0, 1_000_000, 2_000_000, 9_000_000)
PERIOD_NS = 12_000_000
"""The mean gap follows the last frame."""
PLANS: dict[str, tuple[dict[str, Any], int, int]] = {
    "once": ({}, PERIOD_NS, 4),
    "three times": ({"loop": 3}, 3 * PERIOD_NS, 12),
    "until a time": ({"loop": 0, "duration_s": 0.0255}, 25_500_000, 10),
    "three times, but no longer": ({"loop": 3, "duration_s": 0.0015}, 1_500_000, 2),
    "once, with time to spare": ({"duration_s": 10.0}, PERIOD_NS, 4),
    "at a rate": ({"rate": 3}, 1_333_333_333, 4),
    "at a rate, seven times": ({"rate": 1_000_000, "loop": 7}, 28_000, 28),
    "at a rate until a time": ({"rate": 1000, "loop": 0, "duration_s": 0.0101}, 10_100_000, 11),
}


@pytest.mark.parametrize(("plan", "duration_ns", "frames"), PLANS.values(), ids=PLANS)
def test_how_often_and_how_long(plan: dict[str, Any], duration_ns: int, frames: int) -> None:
    trial = trial_of(recording(TIMES_NS), Replaying(**plan), 1)
    assert trial.duration_ns == duration_ns
    assert trial.intended(Direction.FORWARD) == frames


@pytest.mark.parametrize("loop", [0, 1, 3])
def test_frames_that_are_due_after_the_sending_time_are_neither_needed_nor_repeated(tmp_path: Path, loop: int) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 4, [0, 10**9, 2 * 10**9, 3 * DAY_NS])
    conditions = Replaying(duration_s=2.0, loop=loop)
    sent = recording_of(path, conditions)
    assert list(sent.times_ns) == [0, 10**9]
    trial = trial_of(sent, conditions, 1)
    assert (trial.duration_ns, trial.intended(Direction.FORWARD)) == (2 * 10**9, 2)


def test_a_capture_that_is_not_sorted_is_refused_also_behind_the_sending_time(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 3, [0, 5 * 10**9, 10**9])
    with pytest.raises(ReplayError, match=r"frame 3 is 4\.000000000 s earlier than the one before"):
        recording_of(path, Replaying(duration_s=2.0))


@given(st.integers(1, 1_000_000_000), st.integers(1, 50), st.integers(1, 7))
def test_at_any_rate_all_frames_are_sent(rate_fps: int, frames: int, loop: int) -> None:
    trial = trial_of(recording([0] * frames), Replaying(rate=rate_fps, loop=loop), 1)
    assert trial.intended(Direction.FORWARD) == frames * loop


ENDLESS: dict[str, tuple[Sequence[int], dict[str, Any], str]] = {
    "no end": (TIMES_NS, {"loop": 0}, "give a duration"),
    "no time between": ((5, 5), {"loop": 2}, "give a rate"),
    "too long": (TIMES_NS, {"loop": 10_000_000}, "a day at most"),
}


@pytest.mark.parametrize(("times_ns", "plan", "text"), ENDLESS.values(), ids=ENDLESS)
def test_replays_that_would_not_end(times_ns: Sequence[int], plan: dict[str, Any], text: str) -> None:
    first = times_ns[0]
    with pytest.raises(ParameterError, match=text):
        trial_of(recording([at_ns - first for at_ns in times_ns]), Replaying(**plan), 1)


@pytest.mark.parametrize("text", ["0", "-1", "1/0", "0/3", "1e3", "", "two", "0.0"])
def test_factors_that_are_none(text: str) -> None:
    with pytest.raises(ParameterError, match="is not a factor") as raised:
        Replaying(speed=text)
    assert raised.value.key == "speed"


@pytest.mark.parametrize(
    ("given", "factor"),
    [
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        (1.25, Fraction(5, 4)),
        (Fraction(1, 3), Fraction(1, 3)),
        (1 / 3, Fraction(1, 3)),
    ],
)
def test_a_program_gives_a_speed_as_a_number(given: Any, factor: Fraction) -> None:
    assert Replaying(speed=given).factor == factor


@pytest.mark.parametrize("given", [0, -2, 1e-12, 1e10, float("nan"), float("inf"), True])
def test_numbers_that_are_no_factor(given: Any) -> None:
    with pytest.raises(ParameterError) as raised:
        Replaying(speed=given)
    assert raised.value.key == "speed"


@pytest.mark.parametrize("given", ["yes", "true", 1, 0, 1.0])
def test_whether_frames_get_a_tag_is_true_or_false(given: Any) -> None:
    with pytest.raises(ParameterError, match="should be true or false"):
        Replaying(tag=given)


def shown(path: Path, tmp_path: Path, *arguments: str) -> tuple[str, str]:
    """What a replay with the fake engine says: the result, and while it runs."""
    result = dutperf("replay", path, "--config", write(tmp_path, "Engine"), "--drain", "0", *arguments)
    return " ".join(result.stdout.split()), result.stderr


def test_frames_of_one_time_have_no_rate(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 3, [5, 5, 5])
    result, meanwhile = shown(path, tmp_path)
    assert "3 frames, all due at once" in meanwhile
    assert "--rate" in meanwhile
    assert "frames/s, " not in result.partition("┏")[0]
    result, meanwhile = shown(path, tmp_path, "--rate", "100")
    assert "3 frames at 100 frames/s in the mean" in meanwhile
    assert "100 frames/s, " in result.partition("┏")[0]


def test_a_lone_frame(tmp_path: Path) -> None:
    result, meanwhile = shown(capture(tmp_path / "a.pcap", [udp()]), tmp_path)
    assert "replaying 1 frame, " in meanwhile
    assert "frames/s:" not in result
    assert "1 frames" not in result


def test_changes_of_lengths() -> None:
    assert length_changes_of("+50") == LengthChanges(ipv4=50, ipv6=50, other=50)
    assert length_changes_of("ipv4=20, ipv6=-20") == LengthChanges(ipv4=20, ipv6=-20)
    for text in ("", "x", "1,2", "ipv5=1", "ipv4="):
        with pytest.raises(ParameterError) as raised:
            Replaying(length_change=text)
        assert raised.value.key == "length_change"


def test_speed_is_exact() -> None:
    assert factor_of("0.1") == Fraction(1, 10)


def test_the_request_names_the_list_and_the_report_its_digest() -> None:
    trial = trial_of(recording(TIMES_NS), Replaying(directions="reverse"), 1)
    asked = trial.request()["reverse"]
    assert asked["replay"] == {"frames": 4, "length_changes": {"ipv4": 0, "ipv6": 0, "other": 0}}
    assert asked["pattern"] == {"kind": "recorded", "period_ns": PERIOD_NS}
    assert set(asked) == {"rate_fps", "replay", "pattern"}
    written = json.loads(json.dumps(to_json(trial)))
    assert written["reverse"]["replay"]["sha256"] == recording(TIMES_NS).sha256
    again = Trial.model_validate(written)
    with pytest.raises(ValueError, match="read its capture again"):
        again.intended(Direction.REVERSE)


def test_the_digest_is_that_of_everything_sent() -> None:
    digests = {
        recording(*one[:1], **one[1]).sha256
        for one in (
            (TIMES_NS, {}),
            ((0, 1, 2, 3), {}),
            (TIMES_NS, {"data": bytes(61)}),
            (TIMES_NS, {"tag_at": 40}),
            (TIMES_NS, {"destination_mac": "given"}),
        )
    }
    assert len(digests) == 5


def test_a_replay_goes_with_nothing_else() -> None:
    replay = Replay.of(recording(TIMES_NS))
    with pytest.raises(ValidationError, match="does not go with a replay"):
        Stream(rate_fps=1, replay=replay, networks=7)
    with pytest.raises(ValidationError, match="go with a replay only"):
        Stream.model_validate(
            {
                "rate_fps": 1,
                "pattern": Recorded(period_ns=1),
                "foreground": {"version": 4, "size": 64, "source": "198.18.0.2", "destination": "198.19.0.2"},
                "source_port": {"mode": "fixed", "min": 1, "max": 1},
                "destination_port": {"mode": "fixed", "min": 1, "max": 1},
            }
        )


MATCHES: dict[str, tuple[dict[str, int], bool]] = {
    "all came": ({"in_order": 1000}, True),
    "all came, and more": ({"in_order": 1000, "extra": 50}, True),
    "losses": ({"in_order": 900}, True),
    "losses, and few more": ({"in_order": 900, "extra": 10}, True),
    "losses that may be changed frames": ({"in_order": 900, "extra": 11, "fitting_change": 8}, False),
    "everything else": ({"in_order": 0, "extra": 1000}, False),
    "not all noted": ({"in_order": 1000, "not_noted": 1}, False),
}


@pytest.mark.parametrize(("matched", "valid"), MATCHES.values(), ids=MATCHES)
def test_a_loss_counts_only_if_arrivals_are_explained(matched: dict[str, int], valid: bool) -> None:
    one = MatchedByLength(**({"sent": 1000, "reordered": 0, "extra": 0} | matched))
    trial = trial_of(recording([0] * 1000), Replaying(rate=1000), 1)
    received = one.in_order + one.reordered
    verdict, causes = judge(
        trial, {Direction.FORWARD: counts(intended=1000, sent=1000, received=received, matched=one, losses=None)}
    )
    assert (verdict is Verdict.VALID) == valid
    assert [cause.code for cause in causes] == ([] if valid else ["matched"])
    assert ("+8 bytes" in "".join(cause.text for cause in causes)) == bool(one.fitting_change)
    result = TrialResult(trial=1, verdict=verdict, causes=causes, forward=counts(matched=one))
    assert limit_of(result) is (LimitedBy.SETUP if one.fitting_change else LimitedBy.TESTER)


def test_errors_of_the_command_name_the_option(tmp_path: Path) -> None:
    config = write(tmp_path, "Engine")
    path = capture(tmp_path / "a.pcap", [udp()] * 2, [0, 1000])
    rows: list[tuple[list[str], str]] = [
        (["--speed", "2", "--rate", "5"], "--speed: goes without --rate, which replaces the capture's times\n"),
        (["--speed", "fast"], "--speed"),
        (["--loop", "0"], "--loop"),
        (["--length-change", "much"], "--length-change"),
        (["--capture", "lost"], "--capture"),
        (["--capture", "everything"], "--capture"),
        (["--capture-to", "elsewhere.pcapng"], "--capture-to has no effect without --capture\n"),
        (["--rate", "50%"], "--rate"),
    ]
    for arguments, option in rows:
        result = dutperf("replay", path, "--config", config, *arguments)
        assert result.exit_code == 2, arguments
        assert result.stderr.startswith(f"dutperf: {option}"), result.stderr
    missing = dutperf("replay", tmp_path / "none.pcap", "--config", config)
    assert missing.exit_code == 2
    assert "none.pcap" in missing.stderr
    unread = dutperf("replay", tmp_path / "none.pcap", "--config", config, "--speed", "2", "--rate", "5")
    assert unread.stderr.startswith("dutperf: --speed: goes without --rate")
