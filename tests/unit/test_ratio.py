# SPDX-License-Identifier: Apache-2.0
"""Shares as they are typed."""

from __future__ import annotations

import pytest

from dutperf.procedures.back_to_back import BackToBack
from dutperf.procedures.burst_interval import BurstInterval
from dutperf.procedures.soak import Soak
from dutperf.procedures.table_capacity import TableCapacity
from dutperf.procedures.throughput import Throughput
from dutperf.setup.configuration import ParameterError


@pytest.mark.parametrize(("given", "share"), [(0.05, 0.05), ("0.05", 0.05), ("5%", 0.05), (" 0.5 % ", 0.005)])
def test_a_share_may_be_given_in_percent(given: float | str, share: float) -> None:
    for made in (
        Throughput(loss_tolerance=given).loss_tolerance,
        Throughput(search="mlr", goals=[given]).goals[0],
        BurstInterval(interval_resolution=given).interval_resolution,
        BackToBack(burst_resolution=given).burst_resolution,
        TableCapacity(beta=given).beta,
        Soak(target=given).target,
    ):
        assert made == pytest.approx(share)


@pytest.mark.parametrize("given", ["5 %%", "a few", "", "120%", "-1%"])
def test_what_is_no_share_is_refused(given: str) -> None:
    with pytest.raises(ParameterError, match=r"share|should be"):
        Throughput(loss_tolerance=given)
