# SPDX-License-Identifier: Apache-2.0
"""Streams with rates of their own beside those that are measured: what a configuration may say, what is planned, and
what their counts say about a trial."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import traffic
from dutperf.cli.output import console
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.judge import rules, validity
from dutperf.judge.own_loss import own_loss
from dutperf.judge.unanswered import probe_of
from dutperf.model import (
    LOSS_BINS,
    Bursts,
    Cause,
    Direction,
    LateBursts,
    Load,
    Losses,
    Poisson,
    Quantiles,
    Question,
    Stamping,
    Stream,
    Tagged,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.model.pattern import LaterTimes, SteadyTimes
from dutperf.model.value import members_of
from dutperf.run.campaign import PlanError
from dutperf.run.testbench import Bench, Source
from dutperf.setup import configuration, ports
from dutperf.setup.conditions import Conditions, Rate, SingleTrial
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.traffic import replayed
from plans import counts, stream, trial
from recordings import capture, udp

CONFIG: dict[str, Any] = {
    "left": {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"},
    "right": {"port": "ring", "version": 4, "ipv4": "198.19.0.2/24"},
}
NAMED: dict[str, Any] = {
    "ports": {name: {"port": "ring", "version": 4, "ipv4": f"198.1{n}.0.2/24"} for n, name in ((8, "a"), (9, "b"))},
    "paths": "a<->b",
}
THREE = {
    "ports": {**NAMED["ports"], "c": NAMED["ports"]["b"] | {"ipv4": "198.18.3.2/24"}},
    "paths": ["a->b", "b->a", "a->c"],
}
CALL = Direction("forward:call")
BACK = Direction("reverse:call")


def setup(*streams: dict[str, Any], config: dict[str, Any] = CONFIG, **members: Any) -> Setup:
    return configuration.parse({**config, "streams": list(streams), **members}, "test")


def planned(made: Setup, conditions: Conditions | None = None, fps: int = 1000) -> Trial:
    chosen = conditions or SingleTrial(duration_s=10)
    kind = traffic.of(made, traffic.of(made, chosen).sized())
    kind.check()
    return kind.trial(kind.cases()[0], Load.fps(fps), 0)


# --- names and times ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "ends"),
    [("forward:call", "forward", ("left", "right")), ("reverse:a.b", "reverse", ("right", "left")),
     ("a->b:call-1", "a->b", ("a", "b"))],
)  # fmt: skip
def test_a_stream_is_on_a_path(name: str, path: str, ends: tuple[str, str]) -> None:
    direction = Direction(name)
    assert direction.path is Direction(path)
    assert direction.ports == ends
    assert direction.stream == name.partition(":")[2]
    assert not direction.is_of_two
    assert direction.path.with_stream(direction.stream) is direction


@pytest.mark.parametrize("name", ["forward:", "forward:-x", "sideways:call", "a->b:" + 33 * "x", "forward:a:b"])
def test_no_other_name_is_a_stream(name: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        Direction(name)


@given(st.integers(1, 5000), st.integers(0, 10**9), st.integers(1, 10**9), st.integers(0, 3 * 10**9))
def test_later_times_are_those_of_the_interval(rate_fps: int, begin_ns: int, sends_ns: int, after_ns: int) -> None:
    times = LaterTimes(SteadyTimes(rate_fps), begin_ns, sends_ns)
    own = [k * 10**9 // rate_fps for k in range(SteadyTimes(rate_fps).frames_before(sends_ns))]
    assert times.frames_before(after_ns) == sum(1 for due in own if begin_ns + due < after_ns)
    if own:
        assert times.due_ns(len(own) - 1) == begin_ns + own[-1]


def test_a_part_of_the_time_stays_that_part() -> None:
    made = planned(setup({"name": "call", "rate": 100, "begin_s": 2, "duration_s": 5}))
    assert made.intended(CALL) == 500
    shorter = made.lasting(1.0)
    assert shorter.other_streams is not None
    assert (shorter.other_streams[CALL].begin_ns, shorter.other_streams[CALL].sends_ns) == (200_000_000, 500_000_000)
    assert shorter.intended(CALL) == 50


# --- the configuration ----------------------------------------------------------------------------


def test_each_path_of_a_stream_has_its_rate() -> None:
    made = setup(
        {"name": "call", "rate": "50", "sizes": 218, "frame": "ip(dscp=46)/udp", "pattern": "poisson"},
        {"name": "backup", "rate": 7, "directions": "reverse", "pattern": "bursts:7"},
    )
    others = planned(made).other_streams
    assert others is not None
    assert [(str(way), one.rate_fps, one.pattern) for way, one in others.items()] == [
        ("forward:call", 50, Poisson()),
        ("reverse:call", 50, Poisson()),
        ("reverse:backup", 7, Bursts(frames=7)),
    ]
    assert [one.sizes for one in others.values()] == [(218,), (218,), (64,)]
    assert [one["name"] for one in ports.open_request(made, 1518)["other_streams"]] == list(others)
    assert planned(made).streams()[Direction.FORWARD].foreground is not None, "what is measured stays plain"


@pytest.mark.parametrize(
    ("rate", "sizes", "fps"), [("8Mbit/s", 1000, 1000), ("64kbit/s", 218, 37), ("1bit/s", 64, 1), ("2k", 64, 2000)]
)
def test_a_rate_may_be_in_bits(rate: str, sizes: int, fps: int) -> None:
    made = setup({"name": "call", "rate": rate, "sizes": sizes})
    assert (planned(made).other_streams or {})[CALL].rate_fps == fps
    again = configuration.parse(configuration.as_json(made), "a journal")
    assert again == made


def test_bursts_have_a_rate_of_their_own() -> None:
    made = planned(setup({"name": "call", "rate": 100, "pattern": "bursts:10", "burst_rate": 1000}))
    assert (made.other_streams or {})[CALL].pattern == Bursts(frames=10, within_fps=1000)
    with pytest.raises(ConfigError, match=r"streams\.0\.burst_rate: .* 50 frames/s within a burst are less"):
        planned(setup({"name": "call", "rate": 100, "pattern": "bursts:10", "burst_rate": 50}))


def test_a_stream_may_end_with_its_trial() -> None:
    """0.1 + 0.2 is more than 0.3 for a computer."""
    made = planned(setup({"name": "call", "rate": 100, "begin_s": 0.1, "duration_s": 0.2}), SingleTrial(duration_s=0.3))
    assert made.intended(CALL) == 20


@pytest.mark.parametrize("config", [CONFIG, NAMED])
def test_streams_are_sent_alone_by_a_trial_without_a_rate(config: dict[str, Any]) -> None:
    made = setup({"name": "call", "rate": 100, "pattern": "poisson"}, config=config, media_mbps=1)
    bench = Bench(made, EngineTester(EngineCommand("none"), {}), Source.of(None, {}, Path("config.yaml")))
    sent = bench.trial(SingleTrial(duration_s=2), None, 7)
    assert (sent.trial, sent.duration_s, list(sent.streams())) == (7, 2.0, [*made.other_streams()])
    assert sent.streams() == bench.trial(SingleTrial(duration_s=2), Rate.parse("1"), 7).other_streams
    with pytest.raises(ParameterError, match="flows: has no effect without a rate"):
        bench.trial(SingleTrial(flows=3), None, 7)
    assert set(bench.trial(SingleTrial(pattern="ramp:1-2"), None, 7).streams()) == set(made.path_ends())
    shared = replace(bench, setup=setup({"name": "call", "rate": 1}, {"name": "web"}, config=config))
    with pytest.raises(PlanError, match="is missing"):
        shared.trial(SingleTrial(duration_s=2), None, 7)


def test_streams_that_share_the_rate_stay_beside_those_of_their_own() -> None:
    made = planned(setup({"name": "voice", "share": 2}, {"name": "web"}, {"name": "call", "rate": 10}))
    assert made.streams()[Direction.FORWARD].streams == ("voice", "web")
    assert list(made.other_streams or ()) == [CALL, BACK]


def test_named_ports_have_streams_on_paths() -> None:
    made = setup({"name": "call", "rate": 10, "paths": "a->b"}, {"name": "all", "rate": 1}, config=NAMED)
    assert list(planned(made).other_streams or ()) == ["a->b:call", "a->b:all", "b->a:all"]
    assert ports.open_request(made, 1518)["other_streams"][0] == {"name": "a->b:call", "from": "a", "to": "b"}


@pytest.mark.parametrize(
    ("streams", "config", "message"),
    [
        ([{"name": "call", "rate": 0}], CONFIG, "streams.0.rate"),
        ([{"name": "call", "rate": "8mbit"}], CONFIG, "streams.0.rate: the stream call: '8mbit' is not a rate"),
        ([{"name": "call", "rate": "10Mbps"}], CONFIG, "or bit/s of frames (8Mbit/s)"),
        ([{"name": "call", "rate": "fast"}], CONFIG, "streams.0.rate: the stream call: 'fast' is not a rate"),
        ([{"name": "call", "rate": 10, "share": 2}], CONFIG, "share and rate exclude each other"),
        ([{"name": "a call", "rate": 10}], CONFIG, "'a call' is no name for a stream with a rate of its own"),
        ([{"name": "call", "begin_s": 1}], CONFIG, "begin_s is for streams with a rate of their own"),
        ([{"name": "call", "pattern": "poisson"}], CONFIG, "pattern is for streams with a rate of their own"),
        ([{"name": "call", "rate": 1, "pattern": "ramp:1-2"}], CONFIG, "should be constant, poisson or bursts:FRAMES"),
        ([{"name": "call", "rate": 1}, {"name": "call", "rate": 2}], CONFIG, "call is the name of another stream too"),
        ([{"name": "call"}, {"name": "call", "flows": 2}], CONFIG, "call is the name of another stream too"),
        (
            [{"name": "call", "flows": 10**6 + 1}],
            CONFIG,
            "flows: the stream call: should be less than or equal to 1000000",
        ),
        ([{"name": "call", "burst_rate": 9}], CONFIG, "burst_rate is for streams with a rate of their own"),
        ([{"name": "call", "rate": 1, "burst_rate": 9}], CONFIG, "burst_rate has no effect without pattern bursts"),
        ([{"name": "call", "rate": 1, "paths": "a->b"}], CONFIG, "is for named ports"),
        ([{"name": "call", "rate": 1, "paths": "a->c"}], NAMED, "has a->c, but the paths are a->b, b->a"),
        ([{"name": "call", "rate": 1, "paths": "mesh"}], NAMED, "has 'mesh', which is no path"),
        ([{"name": "call", "rate": 1, "directions": "forward"}], NAMED, "does not go with named ports"),
    ],
)
def test_what_a_configuration_may_not_say(streams: list[dict[str, Any]], config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        setup(*streams, config=config)
    assert message in str(error.value)


def test_more_streams_than_there_can_be_are_named() -> None:
    each = [{"name": f"s{number}", "rate": 1} for number in range(33)]
    with pytest.raises(ConfigError, match=r"streams.32: the stream s32: is one more than a configuration can"):
        setup(*each)
    ports = {f"p{n}": {**NAMED["ports"]["a"], "ipv4": f"198.18.{n}.2/24"} for n in range(16)}
    assert len(setup(*each[:32], config={"ports": ports, "paths": "mesh"}).other_streams()) == 32 * 240


@pytest.mark.parametrize(
    ("stream_", "members", "key", "message"),
    [
        ({"rate": "10%"}, {}, "rate", "the stream call: a rate in % needs the media's speed"),
        ({"rate": "2M"}, {"media_mbps": 1000}, "rate", "the stream call: 2,000,000 frames/s are above the media's"),
        ({"rate": 1, "frame": "ip/nothing"}, {}, "frame", "nothing"),
        ({"rate": 1, "begin_s": 10}, {}, "begin_s", "begins 10 s after the start of a trial, which sends for 10 s"),
        ({"rate": 1, "begin_s": 6, "duration_s": 5}, {}, "duration_s", "ends 11 s after the start of a trial"),
        ({"rate": 1, "flows": 9, "frame": "ip/udp(source=1,destination=2)"}, {}, "flows", "nothing tells 9 flows"),
        ({"rate": "60%", "sizes": 9000}, {"media_mbps": 1000}, "", ""),
    ],
)
def test_what_cannot_be_planned(stream_: dict[str, Any], members: dict[str, Any], key: str, message: str) -> None:
    made = setup({"name": "call", **stream_}, **members)
    if not key:
        planned(made)
        return
    with pytest.raises(ConfigError) as error:
        planned(made)
    assert error.value.key == f"streams.0.{key}"
    assert message in error.value.message


def test_what_is_measured_has_what_they_leave_of_the_media() -> None:
    alone, beside = setup(media_mbps=1000), setup({"name": "web", "rate": "25%", "sizes": 1518}, media_mbps=1000)
    conditions = SingleTrial(frame_sizes=(64,))
    whole, left = (
        traffic.of(one, conditions).maximum_fps(traffic.of(one, conditions).cases()[0]) for one in (alone, beside)
    )
    assert whole == 1_488_095
    assert left == pytest.approx(0.75 * whole, rel=1e-4)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ([{"name": "web", "rate": "60%"}, {"name": "more", "rate": "50%"}], "web and more leave nothing to measure"),
        ([{"name": "web", "rate": "100%", "sizes": 1518}], "web leaves nothing to measure forward"),
    ],
)
def test_what_leaves_nothing_of_the_media_is_refused(streams: list[dict[str, Any]], message: str) -> None:
    conditions = SingleTrial(frame_sizes=(64,))
    kind = traffic.of(setup(*streams, media_mbps=10), conditions)
    with pytest.raises(ConfigError, match=message):
        kind.maximum_fps(kind.cases()[0])


def test_streams_that_exceed_the_media_of_a_port_in_sum_are_named() -> None:
    call, web = {"name": "call", "rate": "60%"}, {"name": "web", "rate": "60%"}
    each = [call | {"paths": "a->b"}, web | {"paths": "a->c"}]

    def alone(*streams: dict[str, Any], config: dict[str, Any] = CONFIG) -> None:
        kind = traffic.of(setup(*streams, config=config, media_mbps=1000), SingleTrial(frame_sizes=(64,), duration_s=2))
        kind.trial_of_others(kind.cases()[0], 0)

    with pytest.raises(ConfigError, match="call and web exceed the media at the port left in sum"):
        alone(call, web)
    with pytest.raises(ConfigError, match="call and web exceed the media at the port a in sum"):
        alone(*each, config=THREE)
    alone(call | {"duration_s": 1}, web | {"begin_s": 1})
    alone(call | {"directions": "forward"}, web | {"directions": "reverse"})


def test_paths_from_one_port_share_its_media() -> None:
    made = setup(config=THREE, media_mbps=1000)
    kind = traffic.of(made, SingleTrial(frame_sizes=(64,)))
    assert kind.maximum_fps(kind.cases()[0]) == 744_047


@pytest.mark.parametrize(
    ("conditions", "fps"),
    [
        ({"directions": "reverse"}, 2349),
        ({"directions": "forward"}, 1175),
        ({}, 1175),
        ({"direction_rates": "1:10"}, 2349),
        ({"direction_rates": "10:1"}, 1175),
        ({"direction_rates": "3:4"}, 1566),
    ],
)
def test_a_stream_takes_from_its_own_direction_alone(conditions: dict[str, Any], fps: int) -> None:
    """Half of 10 Mbit/s forward. The maximum is that of the faster direction."""
    made = setup({"name": "web", "rate": "50%", "sizes": 1518, "directions": "forward"}, media_mbps=10)
    given = SingleTrial(**{"frame_sizes": (512,), **conditions})
    kind = traffic.of(made, given)
    assert kind.maximum_fps(kind.cases()[0]) == pytest.approx(fps, abs=2)


def test_ports_take_the_longest_frame_of_any_stream() -> None:
    made = setup({"name": "web", "rate": 1, "sizes": 9000}, {"name": "voice", "sizes": "imix:64=1,4000=1"})
    assert made.longest_of_streams == 9000


@pytest.mark.parametrize(
    ("streams", "key", "message"),
    [
        ([{"name": "web"}], "streams", "give each a rate"),
        ([{"name": "call", "rate": 1}], "tag", "2 of 2 frames have no tag, and nothing tells them from those of the"),
        ([{"name": "call", "rate": 1, "directions": "reverse"}], "", ""),
    ],
)
def test_what_goes_beside_a_replay(streams: list[dict[str, Any]], key: str, message: str, tmp_path: Path) -> None:
    conditions = replayed.Replaying()
    recording = replayed.recording_of(capture(tmp_path / "some.pcap", [udp(), udp()]), conditions)
    if not key:
        replayed.check_streams(recording, conditions, setup(*streams))
        return
    with pytest.raises(ConfigError) as error:
        replayed.check_streams(recording, conditions, setup(*streams))
    assert error.value.key == key
    assert message in error.value.message


def test_their_names_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    cause = Cause(code="unsent", text="forward:a: only 9 frames", direction=Direction("forward:a"))
    lost_all = of_call(received=0)
    made = TrialResult(
        trial=0,
        verdict=Verdict.INVALID,
        causes=(cause,),
        **members_of({Direction.FORWARD: counts(), Direction("forward:a"): lost_all}),
    )
    report = {
        "frame_size": 64,
        "frame_size_ipv4": 64,
        "passed": None,
        "trial": to_json(with_call()),
        "config": CONFIG,
    }
    console.trial(report, made)
    shown = capsys.readouterr().out
    assert "forward:a: only 9 frames" in shown
    assert "in the DUT" not in shown


def test_streams_alone_are_shown_each_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    made = alone()
    result = SimulatedTester(SimulatedDut(capacity_fps=500)).run(made)
    console.trial({"passed": False, "loss_tolerance": 0, "frame_timeout_ms": None, "frame_size": 84,
                   "frame_size_ipv4": 64, "trial": to_json(made), "config": CONFIG}, result)  # fmt: skip
    shown = capsys.readouterr().out
    assert "2 streams with rates of their own" in shown
    assert len([line for line in shown.splitlines() if "forward:" in line and "1,000" in line]) == 2
    assert "2 streams in sum" in shown
    assert result.worst_loss_ratio > 0


def test_a_warm_up_has_them_throughout() -> None:
    made = planned(setup({"name": "call", "rate": 10, "begin_s": 5}), SingleTrial(duration_s=10, warm_up_s=2), fps=100)
    [warm_up] = made.preliminary_trials()
    assert warm_up.intended(CALL) == 20
    assert made.intended(CALL) == 50


# --- what their counts say ------------------------------------------------------------------------


def with_call(**members: Any) -> Trial:
    """A trial of a second with 1,000 frames forward, and 100 of a stream beside them."""
    return trial(reverse=None, **members).model_copy(update={"other_streams": {CALL: stream(4, 64, rate_fps=100)}})


def of_call(**members: Any) -> Any:
    return counts(**{"intended": 100, "sent": 100, "received": 100, "foreground_sent": 100} | members)


def late(us: float) -> Quantiles:
    return Quantiles(p50=0, p99=0, p999=0, max=us)


def bins(at: int, frames: int) -> tuple[int, ...]:
    return tuple(frames if part == at else 0 for part in range(LOSS_BINS))


def lost(received: int, at: int = LOSS_BINS // 2, **members: Any) -> Any:
    missing = Losses(first_s=0.5, last_s=0.5, longest_run=1, bins=bins(at, 1000 - received))
    return counts(received=received, losses=missing, **members)


def test_what_is_lost_of_them_says_nothing() -> None:
    gone = of_call(received=0, losses=Losses(first_s=0, last_s=0.99, longest_run=100, bins=bins(3, 100)))
    counted = {Direction.FORWARD: counts(), CALL: gone}
    assert validity.judge(with_call(), counted) == (Verdict.VALID, ())
    result = TrialResult(trial=1, verdict=Verdict.VALID, **members_of(counted))
    assert result.worst_loss_ratio == result.loss_ratio_in_sum == 0
    assert result.other_streams == {CALL: gone}
    assert own_loss(with_call(), counted) == 0


def test_frames_of_them_that_were_not_sent_are_load_that_was_missing() -> None:
    _, [cause] = validity.judge(with_call(), {Direction.FORWARD: counts(), CALL: of_call(sent=90, received=90)})
    assert (cause.code, cause.direction) == ("unsent", CALL)


def test_one_that_ends_early_may_take_no_longer() -> None:
    early = stream(4, 64, rate_fps=100).model_copy(update={"sends_ns": 200_000_000})
    made = with_call().model_copy(update={"other_streams": {CALL: early}})
    late_end = of_call(intended=20, sent=20, received=20, foreground_sent=20, send_time_s=0.9)
    _, [cause] = validity.judge(made, {Direction.FORWARD: counts(), CALL: late_end})
    assert (cause.code, cause.direction) == ("sending_time", CALL)


@pytest.mark.parametrize(
    ("received", "late_us", "codes"),
    [
        (1000, rules.LATENESS_LIMIT_WITH_LOSS_US + 1, []),
        (1000, rules.LATENESS_LIMIT_US + 1, ["sender_late"]),
        (900, rules.LATENESS_LIMIT_WITH_LOSS_US - 1, []),
        (900, rules.LATENESS_LIMIT_WITH_LOSS_US + 1, ["sender_late"]),
    ],
)
def test_where_frames_are_lost_they_may_not_have_been_late(received: int, late_us: float, codes: list[str]) -> None:
    measured = counts() if received == 1000 else lost(received)
    _, causes = validity.judge(with_call(), {Direction.FORWARD: measured, CALL: of_call(lateness_us=late(late_us))})
    assert [cause.code for cause in causes] == codes
    assert all(cause.direction is CALL and cause.text.startswith("forward:call: ") for cause in causes)


@pytest.mark.parametrize(
    ("of_call_", "own", "codes"), [(60, 0, ["sender_bursts"]), (20, 0, []), (30, 30, ["sender_bursts"])]
)
def test_bursts_of_them_may_have_caused_a_loss(of_call_: int, own: int, codes: list[str]) -> None:
    """50 frames were lost; all that left late may have cost one each."""
    at = LOSS_BINS // 2

    def burst(frames: int) -> dict[str, Any]:
        made = LateBursts(frames=frames, bins=bins(at, frames)) if frames else None
        return {"late_bursts": made, "lateness_us": late(5000 if frames else 0)}

    counted = {Direction.FORWARD: lost(950, at, **burst(own)), CALL: of_call(**burst(of_call_))}
    _, causes = validity.judge(with_call(), counted)
    assert [cause.code for cause in causes] == codes


def test_a_proof_against_the_dut_takes_no_loss_of_them() -> None:
    """The stream beside lost frames before anything was late; what is measured lost none."""
    searching = with_call(question=Question(resolution=0.01))
    gone = of_call(received=10, losses=Losses(first_s=0, last_s=0.1, longest_run=90, bins=bins(0, 90)))
    stalled = counts(lateness_us=late(60_000), late_bursts=LateBursts(frames=60, bins=bins(LOSS_BINS // 2, 60)))
    counted = {Direction.FORWARD: stalled, CALL: gone}
    _, causes = validity.judge(searching, counted)
    assert validity.proven_failed(searching, counted, causes) is None


def test_a_dut_shares_a_path_among_its_streams() -> None:
    """Capacity for 900 of 1,100 frames in a second: each loses its part."""
    made = planned(setup({"name": "call", "rate": 100, "directions": "forward"}), SingleTrial(duration_s=10))
    result = SimulatedTester(SimulatedDut(capacity_fps=900.0, queue_frames=0)).run(made)
    ratio = {way: one.loss_ratio for way, one in result.all_directions().items()}
    assert ratio[Direction.FORWARD] == pytest.approx(float(Fraction(2, 11)), abs=0.01)
    assert ratio[CALL] == pytest.approx(float(Fraction(2, 11)), abs=0.02)
    assert result.loss_ratio_in_sum < 0.15, "reverse had the DUT for itself"


def test_of_one_with_fewer_frames_than_tags_all_are_tagged() -> None:
    made = planned(setup({"name": "call", "rate": 10}, {"name": "early", "rate": 10, "duration_s": 2})).model_copy(
        update={"stamping": Stamping.TAGGED, "tagged": Tagged(count=500, after_ns=5_000_000_000)}
    )
    counted = SimulatedTester().run(made).all_directions()
    stamped = {str(way): one.stamped_sent for way, one in counted.items() if way.path is Direction.FORWARD}
    assert stamped == {"forward": 500, "forward:call": 50, "forward:early": 0}


def test_a_result_keeps_them_apart() -> None:
    result = TrialResult(
        trial=1, verdict=Verdict.VALID, **members_of({Direction("a->b"): counts(), Direction("a->b:call"): of_call()})
    )
    assert list(result.directions()) == ["a->b"]
    assert list(result.all_directions()) == ["a->b", "a->b:call"]
    assert TrialResult.model_validate_json(result.model_dump_json()) == result


def test_due_times_are_those_of_the_streams_own_generator() -> None:
    poisson = Stream(**dict(stream(4, 64, rate_fps=100), pattern=Poisson()))
    made = trial(reverse=None).model_copy(update={"other_streams": {CALL: poisson, BACK: poisson}})
    assert [made.number_of(one) for one in (Direction.FORWARD, CALL, BACK)] == [0, 2, 3]
    assert made.times(CALL).due_ns(50) != made.times(BACK).due_ns(50)


def alone(names: tuple[str, ...] = ("call", "backup")) -> Trial:
    """Nothing but streams with rates of their own."""
    each = {Direction(f"forward:{name}"): stream(6, 84, 1000) for name in names}
    return trial(forward=None, reverse=None, other_streams=each)


def test_streams_alone_are_what_is_measured() -> None:
    made = alone()
    assert made.streams() == made.other_streams
    each = dict.fromkeys(made.all_streams(), counts())
    assert validity.judge(made, each) == (Verdict.VALID, ())
    stalled = counts(received=950, tester_drops={"kernel_socket": 50})
    verdict, [cause] = validity.judge(made, each | {Direction("forward:call"): stalled})
    assert verdict is Verdict.INVALID
    assert cause.direction == "forward:call"
    assert "the tester itself dropped 50 frames" in cause.text


def test_a_loss_of_streams_alone_is_judged_as_one_that_is_measured() -> None:
    """Beside others a loss of theirs decides nothing; alone a late frame may be why they lost some."""
    us = rules.LATENESS_LIMIT_WITH_LOSS_US + 1
    each = {Direction("forward:call"): counts(received=900, lateness_us=late(us))}
    assert [cause.code for cause in validity.judge(alone(("call",)), each)[1]] == ["sender_late"]


def test_bursts_of_one_may_have_caused_a_loss_of_another() -> None:
    burst = LateBursts(frames=60, bins=bins(LOSS_BINS // 2, 60))
    each = {
        Direction("forward:call"): counts(
            received=950, losses=Losses(first_s=0.5, last_s=0.6, longest_run=50, bins=bins(LOSS_BINS // 2, 50))
        ),
        Direction("forward:backup"): counts(late_bursts=burst, lateness_us=late(5000)),
    }
    assert "sender_bursts" in {cause.code for cause in validity.judge(alone(), each)[1]}


def test_a_trial_needs_something() -> None:
    with pytest.raises(ValueError, match="needs a direction, a stream, or a capture"):
        trial(forward=None, reverse=None)


def test_a_cause_of_theirs_needs_no_probe() -> None:
    """A probe has few frames of what is measured, and none of theirs."""
    made = with_call()
    counted = {Direction.FORWARD: counts(received=500), CALL: of_call(sent=90)}
    verdict, causes = validity.judge(made, counted)
    result = TrialResult(trial=1, verdict=verdict, causes=causes, **members_of(counted))
    assert CALL in {cause.direction for cause in result.causes}
    assert probe_of(made, result) is None
