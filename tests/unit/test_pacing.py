# SPDX-License-Identifier: Apache-2.0
"""Spacing by the wire as a condition: where it may be chosen, what a trial must show for it, and what results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf import procedures
from dutperf.judge import validity
from dutperf.model import Direction, Fill, IdleTimes, LineCounts, MediaLimit, Quantiles, Trial, TrialResult, Verdict
from dutperf.procedures.definition import Chapter
from dutperf.results import filled_lines
from dutperf.results.comparability import mismatches
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial, Usual, WithPacing
from dutperf.setup.configuration import ParameterError
from dutperf.setup.pacing import fill_of
from dutperf.tester.simulated import FILLED, SimulatedTester
from plans import counts, make_trial, trial

FILL = Fill(destination="02:00:00:00:88:b5")
SET_UP: dict[str, Any] = {
    "left": {"port": "0000:01:00.0", "version": 4, "ipv4": "198.18.0.2/24"},
    "right": {"port": "0000:02:00.0", "version": 4, "ipv4": "198.19.0.2/24"},
}
SHORT: dict[str, Any] = {"duration_s": 0.5, "drain_s": 0, "repetitions": 1, "settle_s": 0}


def line(**members: Any) -> LineCounts:
    return LineCounts.model_validate(dict(FILLED) | {"fillers": 1000} | members)


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        ("software", None),
        ("fill", FILL),
        ("fill:02:00:5E:00:00:01", Fill(destination="02:00:5e:00:00:01")),
    ],
)
def test_pacing_is_a_text(text: str, fill: Fill | None) -> None:
    assert fill_of(text) == fill


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hardware", "should be software, fill, or fill:MAC"),
        ("software:1", "should be software, fill, or fill:MAC"),
        ("fill:", "is not a MAC address"),
        ("fill:ff:ff:ff:ff:ff:ff", "is not a unicast MAC address"),
    ],
)
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        Usual(pacing=text)


def test_a_frame_timeout_does_not_go_with_a_filled_line() -> None:
    with pytest.raises(ParameterError, match=r"a frame timeout \(`frame_timeout_ms`\) exclude each other: frames wait"):
        make_trial(
            configuration.parse(SET_UP, origin="test"), SingleTrial(pacing="fill", frame_timeout_ms=100), 64, 1000, 1
        )


@pytest.mark.parametrize("engine", [{"queues": 2}, {"offloads": ["send_at"]}, {"offloads": ["rate_limit"]}])
def test_a_setup_in_which_the_card_decides_on_places_is_refused(engine: dict[str, Any]) -> None:
    setup = configuration.parse(SET_UP | {"engine": engine}, origin="test")
    with pytest.raises(ParameterError) as refused:
        make_trial(setup, Usual(pacing="fill"), 64, 1000, 1)
    assert refused.value.key == "pacing"
    assert make_trial(setup, Usual(), 64, 1000, 1).pacing is None


def test_the_request_has_it_also_of_the_warm_up() -> None:
    setup = configuration.parse(SET_UP, origin="test")
    planned = make_trial(setup, Usual(pacing="fill", warm_up_s=1), 64, 1000, 1)
    wanted = {"kind": "fill", "destination": "02:00:00:00:88:b5"}
    assert [one.request()["pacing"] for one in (planned, *planned.preliminary_trials())] == [wanted, wanted]
    assert "pacing" not in make_trial(setup, Usual(), 64, 1000, 1).request()


def test_where_delays_links_or_connections_count_there_is_no_choice() -> None:
    fixed = {one.name for one in procedures.every() if not issubclass(one.conditions, WithPacing)}
    without = {Chapter.DELAYS, Chapter.CONNECTIONS, Chapter.TABLES}
    of_chapters = {one.name for one in procedures.every() if one.chapter in without}
    assert fixed == {"ramp", "load-latency", "reset", "dns64", *of_chapters}


@pytest.mark.parametrize(
    ("counted", "code", "text"),
    [
        (None, "line_idle", "forward: the engine did not fill the line"),
        (
            line(idle=IdleTimes(times=1, longest_us=12.34)),
            "line_idle",
            "forward: the line may have been idle once, for up to 12.3 us,",
        ),
        (line(forwarded=3), "fillers_forwarded", "forward: 3 of 1,000 fillers came back"),
        (line(returned=2), "fillers_forwarded", "forward: 2 of 1,000 fillers came back"),
        (line(early_us=6200.1), "line_rate", "forward: a frame left 6.200 ms early"),
    ],
)
def test_a_trial_without_a_full_line_is_invalid(counted: LineCounts | None, code: str, text: str) -> None:
    filled = trial().model_copy(update={"pacing": FILL})
    media = MediaLimit(line_rate_fps=1, tolerance_us=1200)
    verdict, [cause] = validity.judge(filled, {Direction.FORWARD: counts(line=counted, media=media)})
    assert (verdict, cause.code) == (Verdict.INVALID, code)
    assert cause.text.startswith(text)


def test_a_full_line_is_valid() -> None:
    filled = trial().model_copy(update={"pacing": FILL})
    media = MediaLimit(line_rate_fps=1, tolerance_us=1200)
    counted = counts(line=line(early_us=6199.9), media=media)
    assert validity.judge(filled, {Direction.FORWARD: counted}) == (Verdict.VALID, ())
    assert validity.judge(trial(), {Direction.FORWARD: counts()}) == (Verdict.VALID, ())


def test_a_sentence_says_how_the_line_was_filled() -> None:
    error = Quantiles(p50=0.0, p99=0.3, p999=0.6, max=0.664)
    one = counts(line=line(mbps=1000, error_us=error))
    other = counts(line=line(mbps=1000))
    results = [TrialResult(trial=1, verdict=Verdict.VALID, forward=each) for each in (one, other)]
    results.append(TrialResult(trial=1, verdict=Verdict.INVALID, forward=one))
    [of_trial], [of_run] = filled_lines.of_trial(results[0]), filled_lines.of_run(results)
    assert of_trial == (
        "forward: the line of 1,000 Mbit/s was filled with 1,000 fillers, of 64 bytes or more, to a byte time of 8 ns;"
        " none of them came back; test frames left 0.0 ns after their place in the median, 664.0 ns at most"
    )
    assert "2,000 fillers in 2 valid trials" in of_run


def test_a_line_without_fill_is_not_mentioned() -> None:
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=counts())
    assert list(filled_lines.of_trial(result)) == []
    assert filled_lines.of_run([result]) == ()


@pytest.mark.usefixtures("labs")
def test_results_state_the_spacing_and_are_not_alike(tmp_path: Path) -> None:
    one, other = (
        dutperf.measure(dutperf.FrameLoss(rates="10k", pacing=name, **SHORT), tmp_path / name, lab="kernel-ipv4")
        for name in ("software", "fill")
    )
    written = json.loads((tmp_path / "fill" / "summary.json").read_text())
    assert written["conditions"]["pacing"] == "fill"
    assert [one["text"].split(":")[0] for one in written["remarks"] if one["about"] == "filled_lines"] == [
        "forward",
        "reverse",
    ]
    [deviation] = [each for each in written["deviations"] if "the line into the DUT is always full" in each["text"]]
    assert deviation["clause"] == "RFC 2544 section 21"
    assert "always full" not in (tmp_path / "software" / "summary.json").read_text()
    [found] = [each for each in mismatches(one.measured[0], other.measured[0]) if "spacing" in each.name]
    assert (found.base, found.other) == ("software", "fill")


def test_a_simulated_line_is_full() -> None:
    result = SimulatedTester().run(Trial.model_validate(dict(trial()) | {"pacing": FILL}))
    assert result.forward is not None
    assert (result.verdict, result.forward.line) == (Verdict.VALID, FILLED)
