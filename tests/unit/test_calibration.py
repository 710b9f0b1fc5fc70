# SPDX-License-Identifier: Apache-2.0
"""What is kept of a tester's own floor, where it is stated, and what is taken from which figures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dutperf.procedures.delays import DelaysPoint
from dutperf.run.campaign import PlanError, Summary
from dutperf.tester import calibration
from dutperf.tester.calibration import Calibration, Floor
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import journal_lines, measure, plan

DATE = "2026-01-02T03:04:05+00:00"
OWN_US = 4.0


def a_tester(driver: str = "net_af_packet", engine: str = "0.1.0", interface: str = "veth") -> dict[str, Any]:
    side = {"driver": driver, "interface_driver": interface, "port": "af_packet:tl"}
    return {"left": side, "right": side, "engine": engine, "dpdk": "22.11"}


def a_floor(frame_size: int = 64, typical_us: float = OWN_US) -> Floor:
    return Floor(
        frame_size=frame_size,
        limit_fps=100_000,
        rate_fps=10_000,
        min_us=2.0,
        typical_us=typical_us,
        p999_us=40.0,
        stall_us=50.0,
    )


def a_calibration(*floors: Floor, **tester: str) -> Calibration:
    return calibration.made(a_tester(**tester), floors or (a_floor(),), DATE)


def test_what_is_kept_is_found_for_the_same_tester_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "calibration.json"
    calibration.keep(a_calibration(), file)
    assert calibration.find(a_tester(), file) == a_calibration()
    assert calibration.find(a_tester(driver="net_ixgbe"), file) is None
    assert calibration.find(a_tester(engine="0.2.0"), file) is None
    assert calibration.find(a_tester(interface="igb"), file) is None
    assert calibration.find(a_tester() | {"offloads": ["receive_timestamps"]}, file) is None
    assert calibration.find(a_tester() | {"offloads": []}, file) is not None
    assert calibration.find({}, file) is None


def test_a_newer_one_takes_the_place_of_the_same_testers(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    for one in (a_calibration(), a_calibration(driver="net_ixgbe"), a_calibration(a_floor(typical_us=7.0))):
        calibration.keep(one, file)
    kept = calibration.find(a_tester(), file)
    assert kept is not None
    assert kept.floors[0].typical_us == 7.0
    assert calibration.find(a_tester(driver="net_ixgbe"), file) is not None


def test_one_without_a_limit_takes_no_place_of_one_with_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    without = a_calibration(a_floor(typical_us=7.0).model_copy(update={"limit_fps": None}))
    for kept, typical_us in ((without, 7.0), (a_calibration(), OWN_US), (without, OWN_US)):
        calibration.keep_floors(kept, file)
        found = calibration.find(a_tester(), file)
        assert found is not None
        assert found.floors[0].typical_us == typical_us


def test_floors_by_other_stamps_are_kept_beside_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    calibration.keep(a_calibration(), file)
    for typical_us in (0.8, 0.9):
        kernel = a_floor(typical_us=typical_us).model_copy(update={"limit_fps": None, "stamps": "kernel"})
        loop = a_floor(typical_us=7.0).model_copy(update={"limit_fps": None})
        calibration.keep_floors(a_calibration(loop, kernel), file)
    found = calibration.find(a_tester(), file)
    assert found is not None
    assert [(one.stamps, one.typical_us, one.limit_fps) for one in found.floors] == [
        ("loop", OWN_US, 100_000),
        ("kernel", 0.9, None),
    ]


def test_several_that_are_kept_at_once_are_all_kept(tmp_path: Path) -> None:
    """Each reads the file and writes it: one that did not wait would take the others' away."""
    file = tmp_path / "calibration.json"
    drivers = [f"net_{number}" for number in range(8)]
    with ThreadPoolExecutor(len(drivers)) as at_once:
        list(at_once.map(lambda driver: calibration.keep(a_calibration(driver=driver), file), drivers))
    assert [driver for driver in drivers if calibration.find(a_tester(driver=driver), file) is None] == []


def test_one_from_before_interfaces_were_told_apart_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    calibration.keep(a_calibration(), file)
    file.write_text(file.read_text().replace('"format": 2', '"format": 1'))
    assert calibration.find(a_tester(), file) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 99, "calibrations": []}', '{"format": 2, "calibrations": [{}]}']
)
def test_a_file_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(text)
    assert calibration.find(a_tester(), file) is None


def test_it_is_kept_where_state_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert calibration.path() == tmp_path / "dutperf" / "calibration.json"


def test_the_nearest_size_stands_for_those_that_were_not_calibrated() -> None:
    both = a_calibration(a_floor(64), a_floor(1518, 9.0))
    assert both.floor(128).frame_size == 64
    assert both.floor(1280).frame_size == 1518


def summary(tmp_path: Path, name: str, **conditions: Any) -> Summary:
    usual = {"throughput_from": {84: 10_000}, "frame_sizes": (84,), "duration_s": 1, "tag_after_s": 0.1} | conditions
    what = replace(plan(**usual), calibration=a_calibration())
    return measure(SimulatedTester(SimulatedDut(delay_us=10.0, slow_every=100, slow_us=50.0)), what, tmp_path, name)


def figures(of: Summary) -> dict[str, float]:
    [point] = of.points
    assert isinstance(point, DelaysPoint)
    assert point.forward is not None
    return {name: one.median * 1000 for name, one in point.forward.items()}


ROWS = [
    pytest.param("latency", {"TL": OWN_US, "WCL": OWN_US}, id="latencies"),
    pytest.param(
        "pdv",
        {"PDV": 0.0, "Dmin": OWN_US, "median": OWN_US, "D99.9": OWN_US, "Dmax": OWN_US},
        id="differences stay as they are",
    ),
]


@pytest.mark.parametrize(("name", "less_us"), ROWS)
def test_the_typical_delay_is_taken_from_latencies(tmp_path: Path, name: str, less_us: dict[str, float]) -> None:
    raw, less = summary(tmp_path / "raw", name), summary(tmp_path / "less", name, subtract_calibration=True)
    assert {figure: value - figures(less)[figure] for figure, value in figures(raw).items()} == pytest.approx(less_us)
    assert "0.0040 ms" in less.points[0].message
    assert any("subtracted" in deviation.text for deviation in less.deviations)
    assert "subtracted" not in raw.points[0].message
    assert not any("subtracted" in deviation.text for deviation in raw.deviations)


def test_the_journal_keeps_what_was_measured(tmp_path: Path) -> None:
    for name, chosen in (("raw", False), ("less", True)):
        summary(tmp_path / name, "latency", subtract_calibration=chosen)
    kept = [
        [event["figures_ms"] for event in journal_lines(tmp_path / name) if event["event"] == "delays"]
        for name in ("raw", "less")
    ]
    assert kept[0] == kept[1]


def test_nothing_is_subtracted_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="selftest") as error:
        measure(
            SimulatedTester(), plan(throughput_from={84: 10_000}, subtract_calibration=True), tmp_path / "out", "pdv"
        )
    assert error.value.option == "subtract_calibration"


@pytest.mark.parametrize(
    ("stamps", "subtracted_us"), [("loop", OWN_US), ("kernel", 1.0), ("card", None), ("auto", None)]
)
def test_the_floor_by_the_same_time_stamps_is_subtracted(
    stamps: str, subtracted_us: float | None, tmp_path: Path
) -> None:
    known = a_calibration(a_floor(), a_floor(typical_us=1.0).model_copy(update={"stamps": "kernel"}))
    conditions = {"throughput_from": {84: 10_000}, "stamps": stamps, "subtract_calibration": True}
    planned = replace(plan(**conditions), calibration=known)
    if subtracted_us is None:
        with pytest.raises(PlanError, match=r"by the time stamps of card is unknown|needs `stamps`"):
            measure(SimulatedTester(), planned, tmp_path, "pdv")
        return
    [point] = measure(SimulatedTester(), planned, tmp_path, "pdv").points
    assert isinstance(point, DelaysPoint)
    assert point.subtracted is not None
    assert point.subtracted.delay_ms == subtracted_us / 1000
    assert not (tmp_path / "out").exists()


def test_every_result_states_it(tmp_path: Path) -> None:
    stated = summary(tmp_path, "latency").environment["calibration"]
    assert stated["date"] == DATE
    assert stated["floors"][0]["typical_us"] == OWN_US
