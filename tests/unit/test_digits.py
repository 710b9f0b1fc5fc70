# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences."""

import pytest

from dutperf.model.digits import two_digits


@pytest.mark.parametrize(
    ("number", "text"), [(0.123, "0.12"), (3.66, "3.7"), (99.4, "99"), (99.6, "100"), (100, "100")]
)
def test_two_digits_and_no_exponent(number: float, text: str) -> None:
    assert two_digits(number) == text
