# SPDX-License-Identifier: Apache-2.0
"""A case: which are the same, and how it is written and stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import (
    FRAME_SIZE,
    FRAME_SIZE_IPV4,
    Axis,
    AxisValue,
    Case,
    Value,
    axes_as_json,
    axes_of,
    axes_of_json,
)

NETWORKS: Axis[int] = Axis("networks", "networks", "networks")
MIX: Axis[str] = Axis("mix", "", "mix of sizes")
AXES = (FRAME_SIZE, FRAME_SIZE_IPV4, NETWORKS, MIX)
numbers = st.integers(1, 10_000)
cases = st.permutations(AXES).flatmap(
    lambda axes: st.lists(
        st.one_of(numbers, st.sampled_from(["imix", "random"])), min_size=len(axes), max_size=len(axes)
    ).map(lambda values: Case(dict(zip(axes, values, strict=True))))
)


def of(size: int, ipv4: int | None = None, **others: AxisValue) -> Case:
    known: dict[Axis[Any], AxisValue] = {FRAME_SIZE: size}
    known |= {} if ipv4 is None else {FRAME_SIZE_IPV4: ipv4}
    return Case(known | {axis: others[axis.name] for axis in (NETWORKS, MIX) if axis.name in others})


TEXTS = [
    (of(84), "84 bytes", "84", {"frame_size": 84}),
    (of(84, 64), "84 bytes", "84", {"frame_size": 84}),
    (of(84, 64, networks=16), "84 bytes, 16 networks", "84-16", {"frame_size": 84, "networks": 16}),
    (Case({MIX: "imix"}), "imix", "imix", {"mix": "imix"}),
]


@pytest.mark.parametrize(("case", "text", "slug", "key"), TEXTS)
def test_how_it_is_written(case: Case, text: str, slug: str, key: dict[str, AxisValue]) -> None:
    assert (str(case), case.slug, case.key()) == (text, slug, key)


def test_what_is_derived_tells_no_cases_apart() -> None:
    assert of(84, 64) == of(84, 84) == of(84)
    assert len({of(84, 64), of(84, 84), of(84), of(128)}) == 2
    assert of(84) != of(84, networks=1)
    assert of(84).as_json() != of(84, 64).as_json()


@given(cases)
def test_it_comes_back_from_json(case: Case) -> None:
    axes = axes_of_json(json.loads(json.dumps(axes_as_json(axes_of([case])))))
    again = Case.of_json(json.loads(json.dumps(case.as_json())), axes)
    assert again == case
    assert hash(again) == hash(case)
    assert list(again.items()) == list(case.items())
    assert tuple(again) == axes


def test_a_value_of_an_unknown_axis_is_an_error() -> None:
    with pytest.raises(KeyError):
        Case.of_json({"networks": 16}, (FRAME_SIZE,))


@given(st.lists(numbers, max_size=20))
def test_cases_are_in_the_order_of_their_values(sizes: list[int]) -> None:
    assert [one[FRAME_SIZE] for one in sorted(map(of, sizes), key=Case.order)] == sorted(sizes)


def test_numbers_come_before_words() -> None:
    mixed = [Case({MIX: "imix"}), Case({FRAME_SIZE: 84})]
    assert sorted(mixed, key=Case.order) == [Case({FRAME_SIZE: 84}), Case({MIX: "imix"})]


def test_values_are_asked_for_by_axis() -> None:
    case = of(84, 64, networks=16)
    assert (case[NETWORKS], case.get(MIX), len(case), MIX in case) == (16, None, 3, False)
    assert case.but_for(FRAME_SIZE) == Case({NETWORKS: 16})
    with pytest.raises(KeyError):
        case[MIX]


def test_it_cannot_be_changed_by_what_it_was_made_from() -> None:
    values: dict[Axis[Any], AxisValue] = {FRAME_SIZE: 84}
    case = Case(values)
    values[FRAME_SIZE] = 128
    assert case[FRAME_SIZE] == 84


def test_it_is_a_member_of_values() -> None:
    class Having(Value):
        case: Case

    assert Having(case=of(84, 64)).model_dump(mode="json") == {"case": {"frame_size": 84, "frame_size_ipv4": 64}}
