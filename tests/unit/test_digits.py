# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences."""

import pytest

from dutperf.model.digits import lost_share, two_digits


@pytest.mark.parametrize(
    ("number", "text"), [(0.123, "0.12"), (3.66, "3.7"), (99.4, "99"), (99.6, "100"), (100, "100")]
)
def test_two_digits_and_no_exponent(number: float, text: str) -> None:
    assert two_digits(number) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "-"),
        (0, "0.0000%"),
        (20 / 60_000_000, "3.3e-05%"),
        (1e-12, "1e-10%"),
        (0.000215, "0.0215%"),
        (1, "100.0000%"),
    ],
)
def test_a_share_of_lost_frames_is_never_shown_as_none(ratio: float | None, text: str) -> None:
    assert lost_share(ratio) == text
