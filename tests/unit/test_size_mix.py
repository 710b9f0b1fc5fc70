# SPDX-License-Identifier: Apache-2.0
"""Mixes of frame sizes: their texts, means and orders."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.setup.conditions import Usual, make
from dutperf.setup.configuration import ParameterError
from dutperf.setup.size_mix import SizeMix, spread


@pytest.mark.parametrize(
    ("text", "order", "mean"),
    [
        ("imix", (64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64), 362),
        ("imix:84=1,1280=1", (84, 1280), 682),
        ("imix:aaag", (64, 64, 64, 1518), 428),
        ("imix:azaA,z=1600, A=82", (64, 1600, 64, 82), 452),
        ("imix-random:64=3,100=1", (64, 64, 64, 100), 73),
    ],
)
def test_a_mix_is_read(text: str, order: tuple[int, ...], mean: int) -> None:
    mix = SizeMix.parse(text)
    assert (mix.order, mix.mean, mix.random) == (order, mean, "random" in text)
    assert tuple(mix.sizes[kind] for kind in mix.kinds()) == order


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imix:", None),
        ("imix:64", "'64' is no size with a weight"),
        ("imix:63=1", "63 bytes are impossible"),
        ("imix:64=0", "64=0: each size comes once"),
        ("imix:64=1,64=2", "each size comes once"),
        ("imix:aj", "16000 bytes are impossible: frames have 64 to 9216"),
        ("imix:az", "'z' has no size; RFC 6985 has a 64"),
        ("imix:aB,A=100", "'A=100': there is no A in aB"),
        ("imix:aB", "z and capital letters need yours: imix:aB,B=1400"),
        ("imix:ab,b=100", "'b=100': sizes of your own are z and capital letters"),
        ("imix:ak", "'k' has no size"),
        ("imix:64=1024,65=1", "1024 in sum"),
        ("mix", "is no mix of frame sizes"),
    ],
)
def test_what_is_no_mix_says_why(text: str, message: str | None) -> None:
    if message is None:
        assert SizeMix.parse(text).order == SizeMix.parse("imix").order
        return
    with pytest.raises(ValueError, match=message):
        SizeMix.parse(text)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_weights_are_kept_and_spread_evenly(weights: list[int]) -> None:
    order = spread(weights)
    total = sum(weights)
    assert [order.count(index) for index in range(len(weights))] == weights
    for index, weight in enumerate(weights):
        places = [place for place, one in enumerate(order) if one == index]
        gaps = [later - earlier for earlier, later in pairwise([*places, places[0] + total])]
        assert max(gaps) <= total / weight + len(weights) + 1


def test_a_mix_is_a_frame_size_of_the_conditions() -> None:
    given_mix = Usual(frame_sizes=["imix:64=7,594=4,1518=1"])
    assert given_mix.size_mix == "imix:64=7,594=4,1518=1"
    assert not given_mix.sizes_are_given
    with pytest.raises(ParameterError, match="measured alone"):
        Usual(frame_sizes=["imix", "64"])
    with pytest.raises(ParameterError) as caught:
        make(Usual, {"frame_sizes": "imix,64"})
    assert caught.value.key == "frame_sizes"
