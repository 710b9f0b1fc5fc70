# SPDX-License-Identifier: Apache-2.0
"""The program's interface on a real lab: measured, kept, taken down, and nothing of this process is
left changed. Root only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import dutperf

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]


def test_a_program_measures_the_reference_dut(tmp_path: Path, lab_records: Path) -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    short: dict[str, Any] = {"duration_s": 0.3, "drain_s": 0.1}
    with dutperf.bench(lab="refdut-ipv4", lab_options={"loss_every": 10}) as bench:
        assert os.getpriority(os.PRIO_PROCESS, 0) == 19
        result = bench.measure(dutperf.FrameLoss(rates=["2k"], repetitions=1, **short), tmp_path / "loss")
        assert bench.trial("1k", dutperf.SingleTrial(**short)).directions().keys() == {"forward", "reverse"}
    assert (os.getpriority(os.PRIO_PROCESS, 0), list(lab_records.glob("*.json"))) == (niceness, [])
    assert result.is_complete
    [row] = result.rows()
    assert (row["procedure"], row["frame_size"], row["rates.rate_fps"]) == ("frame-loss", 64, 2000)
    assert row["rates.loss_ratio.worst.median"] is None or 0.09 < row["rates.loss_ratio.worst.median"] < 0.2
    assert result.to_pandas(trials=True)["verdict"].isin(["valid", "invalid", "aborted"]).all()
