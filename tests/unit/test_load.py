# SPDX-License-Identifier: Apache-2.0
"""A load: how it is written, stored and compared."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import Load, Unit, is_load

units, values = st.sampled_from(Unit), st.integers(0, 10**12)
loads = st.builds(Load, values, units)
TEXTS = [
    (Load.fps(15_000), "15,000 frames/s", "rate_fps", "frames/s per direction", "frames_per_second"),
    (Load(12, Unit.CONNECTIONS_PER_SECOND), "12 connections/s", "rate_cps", "connections/s", "connections_per_second"),
    (Load(7, Unit.QUERIES_PER_SECOND), "7 queries/s", "rate_qps", "queries/s", "queries_per_second"),
    (Load(2_048, Unit.FRAMES), "a burst of 2,048 frames", "frames", "frames per direction", "frames"),
]  # fmt: skip


@pytest.mark.parametrize(("load", "text", "column", "label", "in_words"), TEXTS, ids=[str(load) for load, *_ in TEXTS])
def test_how_it_is_written(load: Load, text: str, column: str, label: str, in_words: str) -> None:
    unit = load.unit
    assert (str(load), unit.column, unit.label, unit.in_words) == (text, column, label, in_words)


def test_no_two_units_have_the_same_names() -> None:
    for names in ([unit.column for unit in Unit], [unit.in_words for unit in Unit], [unit.suffix for unit in Unit]):
        assert len(set(names)) == len(Unit)


@given(loads)
def test_it_comes_back_from_json(load: Load) -> None:
    stored = json.loads(json.dumps(load.as_json()))
    assert is_load(stored)
    assert Load.of_json(stored) == load


@pytest.mark.parametrize("other", [{"value": 5, "unit": "fps"}, {"value": 5}, {}, 5, None, [], "frames/s"])
def test_what_is_no_load(other: object) -> None:
    assert not is_load(other)


@given(values, values, units)
def test_loads_of_a_unit_are_in_the_order_of_their_values(one: int, other: int, unit: Unit) -> None:
    assert (Load(one, unit) < Load(other, unit)) == (one < other)
    assert (Load(one, unit) >= Load(other, unit)) == (one >= other)
    assert max(Load(one, unit), Load(other, unit)).value == max(one, other)


@given(values, st.lists(units, min_size=2, max_size=2, unique=True))
def test_loads_of_different_units_are_neither_equal_nor_in_any_order(value: int, two: list[Unit]) -> None:
    one, other = (Load(value, unit) for unit in two)
    assert one != other
    with pytest.raises(TypeError):
        assert one < other
