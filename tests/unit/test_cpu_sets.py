# SPDX-License-Identifier: Apache-2.0
"""Sets of cores in the kernel's notations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.machine.cpu_sets import as_list, from_list, from_mask

CORES = st.frozensets(st.integers(0, 300))


def mask_of(cores: frozenset[int]) -> str:
    """As the kernel prints it (``%*pb``): words of 32 bits, the highest first."""
    bits = sum(1 << core for core in cores)
    words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(max(cores, default=0) // 32 * 32, -1, -32)]
    return ",".join([words[0].lstrip("0") or "0", *words[1:]])


@given(CORES)
def test_a_list_is_read_as_it_is_written(cores: frozenset[int]) -> None:
    assert from_list(as_list(cores)) == cores


@given(CORES)
def test_a_mask_is_read_as_the_kernel_writes_it(cores: frozenset[int]) -> None:
    assert from_mask(mask_of(cores)) == cores


@pytest.mark.parametrize(("text", "cores"), [("", set()), ("0", {0}), ("0-2,7\n", {0, 1, 2, 7}), ("1,3", {1, 3})])
def test_lists(text: str, cores: set[int]) -> None:
    assert from_list(text) == cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("0", set()),
        ("2", {1}),
        ("00000000,00000003", {0, 1}),
        ("1,00000000", {32}),
        ("ff,00000001\n", {0, *range(32, 40)}),
    ],
)
def test_masks(text: str, cores: set[int]) -> None:
    assert from_mask(text) == cores


@pytest.mark.parametrize("text", ["x", "1-", "0x1", "1..3"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        from_list(text)


@pytest.mark.parametrize(("cores", "text"), [((), ""), ((3,), "3"), ((2, 0, 1, 8), "0-2,8")])
def test_the_shortest_list(cores: tuple[int, ...], text: str) -> None:
    assert as_list(cores) == text
