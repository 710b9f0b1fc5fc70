# SPDX-License-Identifier: Apache-2.0
"""The tester against reference DUTs at both ends of a technology, or against one of them: nothing is lost, and the
capacity of the one that has it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.lab.refdut import RefDut
from dutperf.lab.reference_ends import TECHNOLOGIES
from undisturbed import valid

from .measuring import bench
from .test_commands import measured

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

LABS = [f"refdut-{name}" for name in TECHNOLOGIES]
FORWARD_ONLY = "refdut-ds-lite"
"""From the right there are no connections."""
FORMS = [
    *(pytest.param(name, {}, id=f"{name} both") for name in LABS),
    *(
        pytest.param(name, {"end": end}, id=f"{name} {end}", marks=pytest.mark.long)
        for name in LABS
        for end in ("left", "right")
    ),
    *(
        pytest.param(name, {"psid_length": "6", **end}, id=f"{name} {' '.join(end.values())} shared", marks=mark)
        for name in ("refdut-map-t", "refdut-map-e", "refdut-lw4o6")
        for end, mark in (({}, ()), ({"end": "left"}, pytest.mark.long), ({"end": "right"}, pytest.mark.long))
    ),
]


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_a_slow_trial_loses_nothing_and_each_dut_counts_the_frames(name: str, options: dict[str, str]) -> None:
    directions = "forward" if name == FORWARD_ONLY and options.get("end") != "left" else "both"
    with bench(name, options) as ready:
        result = valid(lambda: ready.run(2000, directions=directions))
        truths = [RefDut(Path(str(dut.control))).counters() for dut in ready.setup.duts()]
    for direction, counts in result.directions().items():
        assert counts.sent == counts.received == counts.intended == 1000
        assert (counts.duplicates, counts.corrupted, counts.stale) == (0, 0, 0)
        for truth in truths:
            one = getattr(truth, direction)
            assert one.lost_total == 0
            assert one.forwarded == one.received == one.translated + one.tunnelled - _both(name, one)


def _both(name: str, one: object) -> int:
    """Packets of an AFTR are both."""
    return int(min(one.translated, one.tunnelled)) if name == FORWARD_ONLY else 0  # type: ignore[attr-defined]


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [{"end": "both", "properties_of": "left"}, {"end": "both", "properties_of": "right"}, {"end": "left"}],
    ids=lambda one: " ".join(one.values()),
)
@pytest.mark.parametrize("name", LABS)
def test_the_capacity_is_read(name: str, options: dict[str, str], tmp_path: Path) -> None:
    """In 1 s a queue of 40 frames takes up what exceeds the capacity by 41 frames/s."""
    truth = pytest.approx(4_041, rel=0.005)
    given = [f"{option}={value}" for option, value in {"capacity_fps": "4000", "queue": "40", **options}.items()]
    lab = ["--lab", name, *(text for one in given for text in ("--lab-option", one))]
    search = ["--directions", "forward", "--duration", "1", "--drain", "0.2", "--settle", "0"]
    range_ = ["--min-rate", "3900", "--max-rate", "4200", "--resolution", "10"]
    [point] = measured(tmp_path, lambda fps: fps == truth, *lab, *search, *range_)["points"]
    assert point["throughput_fps"]["median"] == truth
