# SPDX-License-Identifier: Apache-2.0
"""Rates as people write them, and conditions that are checked once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf import procedures
from dutperf.model import LEFT_AND_RIGHT, Direction
from dutperf.procedures.back_to_back import BackToBack
from dutperf.procedures.establishment_rate import EstablishmentRate
from dutperf.procedures.frame_loss import FrameLoss
from dutperf.procedures.latency import Latency
from dutperf.procedures.recovery import Recovery
from dutperf.procedures.reset import Reset
from dutperf.procedures.throughput import Throughput
from dutperf.setup.conditions import Rate, SingleTrial, Usual, each
from dutperf.setup.configuration import ParameterError
from dutperf.setup.option import offered
from plans import Everything


@pytest.mark.parametrize(
    ("text", "maximum_fps", "fps"),
    [
        ("60000", None, 60_000),
        ("60_000", None, 60_000),
        ("60k", None, 60_000),
        (" 1.5M ", None, 1_500_000),
        ("60K", None, 60_000),
        ("0.0011M", None, 1_100),
        ("10.0", None, 10),
        ("12.5%", 1_488_095, 186_012),
        ("100 %", 1_488_095, 1_488_095),
        ("0.00001%", 1_000, 1),
    ],
)
def test_rates(text: str, maximum_fps: int | None, fps: int) -> None:
    assert Rate.parse(text).fps(maximum_fps) == fps


@pytest.mark.parametrize(
    "text", ["", "0", "0%", "-5", "_", "fast", "5 G", "1e6", "5kk", "1.2.3", "nan", "inf", "1,000"]
)
def test_no_rates(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a rate: give frames per second, at least 1 \(60000, 60k, 1.5M\)"):
        Rate.parse(text)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("0.5", "'0.5' is not a whole number of frames per second"),
        ("2.5", "not a whole number"),
        ("0.0005k", "not a whole number"),
        (0.5, "not a whole number"),
        (float("nan"), "not a whole number"),
        (float("inf"), "above the limit"),
        ("10.000", "'10.000' may be 10 or 10000 frames/s: give it without a point"),
        ("99999999999", "'99999999999' is above the limit of 1,000,000,000 frames/s"),
        (10**400, "above the limit"),
        (True, "True is not a rate"),
        (None, "None is not a rate"),
        ([5], "is not a rate"),
    ],
)
def test_rates_that_no_trial_can_have(given: object, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Rate.model_validate(given)


def test_a_share_of_a_very_fast_medium_has_the_limit_of_every_rate() -> None:
    with pytest.raises(ValueError, match=r"above the limit of 1,000,000,000 frames/s"):
        Rate.parse("100%").fps(10**10)


def test_rates_of_earlier_versions_are_read() -> None:
    assert Rate.model_validate({"value": 0.5, "unit": "fps"}).fps(None) == 1


def test_a_percentage_needs_a_maximum() -> None:
    with pytest.raises(ValueError, match="media_mbps"):
        Rate.parse("5%").fps(None)


@given(st.integers(1, 10**9))
def test_a_rate_in_frames_is_exact(fps: int) -> None:
    assert Rate.parse(str(fps)).fps(None) == fps


@pytest.mark.parametrize("text", ["60k", "12.5%", "0.5%", "1.5M", "999999999"])
def test_a_rate_as_text_is_read_as_the_same_rate(text: str) -> None:
    assert Rate.parse(Rate.parse(text).text()) == Rate.parse(text)


@pytest.mark.parametrize(("text", "shown"), [("60k", "60,000 frames/s"), ("0.5%", "0.5 %")])
def test_how_a_rate_is_shown(text: str, shown: str) -> None:
    assert str(Rate.parse(text)) == shown


@pytest.mark.parametrize(
    ("members", "within_s"),
    [
        ({"duration_s": 120}, (60, 60, 10)),
        ({"duration_s": 600.0}, (60, 60, 10)),
        ({"duration_s": 119}, (59.5, 59.5, 10)),
        ({"duration_s": 3}, (1.5, 1.5, 1.5)),
        ({"duration_s": "3"}, (1.5, 1.5, 1.5)),
        ({}, (60, 60, 10)),
        ({"duration_s": 60}, (30, 30, 10)),
        ({"duration_s": 3, "tag_after_s": 2, "overload_s": 60, "reset_after_s": 1}, (2, 60, 1)),
    ],
)
def test_what_happens_within_a_trial_happens_halfway_where_the_trial_is_short(
    members: dict[str, Any], within_s: tuple[float, ...]
) -> None:
    models = {"tag_after_s": Latency, "overload_s": Recovery, "reset_after_s": Reset}
    for (name, model), expected_s in zip(models.items(), within_s, strict=True):
        chosen = model(**{given: value for given, value in members.items() if given in ("duration_s", name)})
        assert getattr(chosen, name) == expected_s
        assert model(**chosen.stated()) == chosen


@pytest.mark.parametrize("duration_s", [0, -1, float("nan"), float("inf"), "long", None, []])
def test_a_duration_that_is_not_possible_is_refused_as_the_duration(duration_s: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Usual(duration_s=duration_s)
    assert caught.value.key == "duration_s"


def test_the_defaults_conform() -> None:
    """RFC 2544 sections 23, 24 and 26.1; RFC 8219 section 12; RFC 4814 4.5."""
    conditions = Usual()
    assert (conditions.duration_s, conditions.drain_s, conditions.loss_tolerance, conditions.repetitions) == (
        60,
        2,
        0,
        20,
    )
    assert (conditions.directions, conditions.ports) == ("both", "random")


@pytest.mark.parametrize(
    "members",
    [
        {"frame_sizes": ()},
        {"frame_sizes": (63,)},
        {"duration_s": 0},
        {"drain_s": -1},
        {"foreground": "2:3"},
        {"foreground": "2"},
        {"frame_sizes": (84, 84)},
        {"frame_sizes": "rfc1"},
        {"loss_tolerance": 1.0},
        {"repetitions": 0},
        {"networks": 257},
        {"directions": "up"},
        {"frame_timeout_ms": 0},
        {"frame_timeout_ms": 2001},
        {"frame_timeout_ms": 11, "drain_s": 0.01},
        {"duration": 5},
    ],
)
def test_what_cannot_be(members: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Throughput(**members)


NEEDING = [
    (SingleTrial, {"capture_to": "a.pcapng"}, "capture", {"capture": "first"}),
    (Throughput, {"preliminary_rate": "5k"}, "connections", {"connections": 10}),
    (Throughput, {"phase_gap_s": 1.0}, "connections", {"connections": 10}),
    (EstablishmentRate, {"phase_gap_s": 1.0, "reply_share": 0.0}, "reply_share", {"reply_share": 0.5}),
]


@pytest.mark.parametrize(("model", "members", "needed", "given"), NEEDING)
def test_a_member_without_effect_is_refused(
    model: Any, members: dict[str, Any], needed: str, given: dict[str, Any]
) -> None:
    [name] = members.keys() - given.keys()
    with pytest.raises(ParameterError, match=f"`{name}` has no effect without `{needed}`"):
        model(**members)
    model(**members | given)


def test_a_list_of_rates_is_not_empty() -> None:
    with pytest.raises(ParameterError):
        FrameLoss(rates=())


@pytest.mark.parametrize(
    ("directions", "active"),
    [("both", LEFT_AND_RIGHT), ("forward", (Direction.FORWARD,)), ("reverse", (Direction.REVERSE,))],
)
def test_active_directions(directions: Any, active: tuple[Direction, ...]) -> None:
    assert Usual(directions=directions).active() == active


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, ""),
        ({"loss_tolerance": 0.001}, "up to 0.1 % of a direction's frames lost"),
        ({"goals": (0.005, 0.1)}, "up to 0.5 % of a direction's frames lost"),
        ({"goals": (0.005, 0)}, ""),
        (
            {"loss_tolerance": 0.001, "frame_timeout_ms": 10},
            "up to 0.1 % of a direction's frames lost and frames later than 10 ms counted as lost",
        ),
    ],
)
def test_what_else_than_no_loss_passes_is_said(members: dict[str, Any], text: str) -> None:
    assert Everything(**members).passing() == text


def test_conditions_go_through_json_unchanged() -> None:
    conditions = FrameLoss(
        frame_sizes=(84, 1518), max_rate=Rate.parse("12.5%"), loss_tolerance=0.0005, foreground="10:9"
    )
    assert conditions.stated()["foreground"] == "10:9"
    assert FrameLoss.recorded(conditions.stated()) == conditions
    assert Usual.recorded(conditions.stated()).loss_tolerance == 0.0005


@pytest.mark.parametrize(
    ("given", "sizes", "series"),
    [
        (84, (84,), None),
        ([84, 128], (84, 128), None),
        ("84, 128", (84, 128), None),
        (["84,128", "1518"], (84, 128, 1518), None),
        ("rfc2544", (84,), "rfc2544"),
        (["rfc8219-jumbo"], (84,), "rfc8219-jumbo"),
    ],
)
def test_frame_sizes_as_people_give_them(given: Any, sizes: tuple[int, ...], series: str | None) -> None:
    chosen = Usual(frame_sizes=given)
    assert (chosen.frame_sizes, chosen.series, chosen.sizes_are_given) == (sizes, series, series is None)


def test_each_of_several_values_is_measured() -> None:
    made = each(Usual, {"foreground": "rfc8219", "networks": [1, 256], "duration_s": None})
    assert [(str(one.foreground.text()), one.networks) for one in made] == [
        (share, count) for count in (1, 256) for share in ("2:2", "10:9", "2:1", "10:1")
    ]
    with pytest.raises(ParameterError, match="the same value twice") as caught:
        each(Usual, {"foreground": "2:1,4:2"})
    assert caught.value.key == "foreground"


def test_what_a_procedure_does_not_offer_is_not_stated() -> None:
    stated = BackToBack(frame_sizes=84).stated()
    assert not {"duration_s", "pattern", "burst_rate", "goals"} & stated.keys()
    assert {"max_burst_s", "networks", "foreground"} <= stated.keys()


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
def test_every_member_that_a_procedure_offers_says_what_it_is(definition: Any) -> None:
    members = list(offered(definition.conditions))
    assert all(one.option.help[-1] not in ". " and one.option.label for one in members)
    assert len({one.flag for one in members}) == len(members)


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
def test_only_what_a_procedure_has_is_an_option_of_it(definition: Any) -> None:
    given = {key for one in offered(definition.conditions) for key in one.keys}
    assert ("repetitions" in given) == (definition.name not in ("soak", "traffic"))
