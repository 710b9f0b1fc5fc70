# SPDX-License-Identifier: Apache-2.0
"""Several measurements in one: what is measured in which order, at which rates, and what is left
when it is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from dutperf import journal, procedures
from dutperf.api import results
from dutperf.cli.commands.measure import exit_status
from dutperf.exit_status import INVALID, NO_NUMBER
from dutperf.journal import JOURNAL, JournalError
from dutperf.model import FRAME_SIZE, Case, LimitedBy, Load, Trial, TrialResult
from dutperf.procedures.back_to_back import BackToBackPoint
from dutperf.procedures.bench import PlanError
from dutperf.run import resume, suite
from dutperf.run.campaign import Observer, Plan
from dutperf.run.earlier_runs import earlier_throughput
from dutperf.run.suite import Measurement, SuiteSummary
from dutperf.setup.conditions import Conditions, Rate
from dutperf.setup.configuration import ParameterError
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Everything, Log, SiitTraffic, making, measure, plan

SHORT: dict[str, Any] = {
    "duration_s": 0.5,
    "drain_s": 0,
    "repetitions": 2,
    "frame_sizes": (84, 128),
    "tag_after_s": 0.1,
    "tags": 50,
}
CAPACITY_FPS = 50_000


def conditions(**members: Any) -> Conditions:
    return Everything(**(SHORT | members))


@dataclass
class SimulatedBench:
    tester: SimulatedTester = field(default_factory=lambda: SimulatedTester(SimulatedDut(capacity_fps=CAPACITY_FPS)))

    def plan(self, conditions: Conditions) -> Plan:
        return replace(plan(**dict(conditions)), conditions=conditions)

    @contextmanager
    def modified(self, _conditions: Conditions) -> Iterator[SimulatedBench]:
        yield self


class Watched:
    """Keeps what is measured, in order."""

    def __init__(self) -> None:
        self.names: list[tuple[int, str]] = []

    @contextmanager
    def __call__(self, measurement: Measurement, number: int) -> Iterator[Observer]:
        self.names.append((number, measurement.name))
        yield Log()


def wanted(*named: tuple[str, Conditions]) -> list[tuple[Any, Conditions]]:
    found = [(procedures.find(name), chosen) for name, chosen in named]
    return [(definition, definition.conditions.recorded(dict(chosen))) for definition, chosen in found]


def names(*named: tuple[str, Conditions]) -> list[tuple[str, str | None]]:
    return [(one.name, one.throughput_of) for one in suite.arrange(wanted(*named))]


NATIVE = {"foreground": "10:9"}
RATE = Rate.parse("10k")
ARRANGED = [
    pytest.param([("throughput", {})], [("throughput", None)], id="one"),
    pytest.param(
        [("latency", {}), ("throughput", {})], [("throughput", None), ("latency", "throughput")], id="throughput first"
    ),
    pytest.param(
        [("pdv", {})], [("throughput", None), ("pdv", "throughput")], id="throughput although nobody asked for it"
    ),
    pytest.param([("pdv", {"rate": RATE})], [("pdv", None)], id="a given rate needs none"),
    pytest.param([("pdv", {"throughput_from": {84: 1, 128: 1}})], [("pdv", None)], id="nor does an earlier result"),
    pytest.param(
        [("latency", {"directions": "forward"}), ("pdv", {})],
        [
            ("throughput-forward", None),
            ("latency-forward", "throughput-forward"),
            ("throughput", None),
            ("pdv", "throughput"),
        ],
        id="a throughput in one direction is none of both",
    ),
    pytest.param(
        [("frame-loss", {}), ("throughput", {})],
        [("throughput", None), ("frame-loss", None)],
        id="loss does not depend on it",
    ),
    pytest.param(
        [("throughput", {}), ("throughput", NATIVE), ("ipdv", {}), ("ipdv", NATIVE | {"networks": 256})],
        [
            ("throughput", None),
            ("ipdv", "throughput"),
            ("throughput-native10", None),
            ("throughput-native10-networks256", None),
            ("ipdv-native10-networks256", "throughput-native10-networks256"),
        ],
        id="mix by mix",
    ),
]


@pytest.mark.parametrize(("asked", "arranged"), ARRANGED)
def test_of_each_mix_the_throughput_is_measured_first(
    asked: list[tuple[str, dict[str, Any]]], arranged: list[tuple[str, str | None]]
) -> None:
    assert names(*((name, conditions(**members)) for name, members in asked)) == arranged


def test_a_throughput_that_nobody_asked_for_has_all_sizes_and_trials_no_longer_than_needed() -> None:
    asked = [
        ("latency", conditions(frame_sizes=(84,), duration_s=120)),
        ("pdv", conditions(frame_sizes=(128, 84), duration_s=70)),
    ]
    searching = suite.arrange(wanted(*asked))[0].conditions
    assert (searching.frame_sizes, searching.duration_s) == ((84, 128), 60)
    assert suite.arrange(wanted(("pdv", conditions(duration_s=3))))[0].conditions.duration_s == 3


def test_a_throughput_that_nobody_asked_for_has_no_more_repetitions_than_its_own_clause_asks_for() -> None:
    for repetitions, expected in ((50, 20), (3, 3)):
        [searched, _] = suite.arrange(wanted(("back-to-back", conditions(repetitions=repetitions))))
        assert searched.conditions.repetitions == expected


def test_bursts_follow_the_throughput_below_the_same_maximum_rate(tmp_path: Path) -> None:
    bench = SimulatedBench(SimulatedTester(SimulatedDut(capacity_fps=CAPACITY_FPS, queue_frames=100)))
    chosen = conditions(
        max_rate=Rate.parse("100k"), resolution=Rate.parse("100"), burst_resolution=0.001, frame_sizes=(84,)
    )
    searched, bursts = suite.begin(
        suite.arrange(wanted(("back-to-back", chosen))), bench, tmp_path / "out", Watched()
    ).measurements
    assert searched.summary is not None
    assert bursts.summary is not None
    [point] = bursts.summary.points
    assert isinstance(point, BackToBackPoint)
    assert point.throughput_fps == pytest.approx(CAPACITY_FPS + 100 / 60, abs=101), "trials of 60 s"
    assert point.average_frames == pytest.approx(100 / 0.5, abs=2)


@pytest.mark.parametrize("other", [{"ports": "fixed"}, {"direction_rates": "10:1"}])
def test_a_throughput_of_other_traffic_is_refused(other: dict[str, Any]) -> None:
    """Also where the measurements have one name."""
    with pytest.raises(PlanError, match="the throughput is that of other traffic"):
        suite.arrange(wanted(("throughput", conditions(**other)), ("latency", conditions())))
    with pytest.raises(PlanError, match="the throughput is that of other traffic"):
        suite.arrange(wanted(("pdv", conditions(**other)), ("latency", conditions())))


def test_a_size_without_a_throughput_is_refused() -> None:
    with pytest.raises(PlanError, match="the throughput of 128, 256 bytes is needed") as caught:
        suite.arrange(
            wanted(("throughput", conditions(frame_sizes=(84,))), ("pdv", conditions(frame_sizes=(84, 256, 128))))
        )
    assert caught.value.option == "frame_sizes"


WHOLE = (
    ("throughput", {}),
    ("latency", {}),
    ("frame-loss", {"max_rate": Rate.parse("60k"), "repetitions": 1}),
    ("pdv", {"networks": 256}),
)
RUNS = ["throughput", "latency", "frame-loss", "throughput-networks256", "pdv-networks256"]


def a_suite() -> tuple[Measurement, ...]:
    return suite.arrange(wanted(*((name, conditions(**members)) for name, members in WHOLE)))


def begun(out: Path, bench: SimulatedBench | None = None) -> SuiteSummary:
    return suite.begin(a_suite(), bench or SimulatedBench(), out, Watched())


def test_everything_is_measured_and_what_depends_on_it_at_the_throughput(tmp_path: Path) -> None:
    watched = Watched()
    summary = suite.begin(a_suite(), SimulatedBench(), tmp_path, watched)
    assert watched.names == list(enumerate(RUNS, start=1))
    assert [part.name for part in summary.measurements] == RUNS
    by_name = {part.name: part.summary for part in summary.measurements}
    assert all(found is not None and not found.without_number() for found in by_name.values())
    throughput, latency = (by_name[name].points for name in ("throughput", "latency"))  # type: ignore[union-attr]
    assert [point.rate_fps for point in latency] == [int(point.throughput_fps.median) for point in throughput]
    assert all(abs(point.throughput_fps.median - CAPACITY_FPS) / CAPACITY_FPS <= 0.005 for point in throughput)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary.model_dump(mode="json")
    for part in summary.measurements:
        assert part.summary is not None
        assert json.loads((tmp_path / part.name / "summary.json").read_text()) == part.summary.model_dump(mode="json")


def test_a_suite_that_is_being_measured_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the DUT is set up: the live run has done so, and a tear-down would take the DUT from
    it."""
    begun(tmp_path)
    (tmp_path / RUNS[-1] / JOURNAL).unlink()

    def set_up(*_: Any, **__: Any) -> Any:
        raise AssertionError("the DUT is set up under the run that measures it")

    monkeypatch.setattr(resume, "bench", set_up)
    with (
        suite.held(tmp_path),
        pytest.raises(JournalError, match=r"suite\.json is being written: its run goes on in another process"),
    ):
        resume.resume(tmp_path, lambda _measurements: nullcontext(Watched()))


def test_a_suite_is_held_while_it_is_measured(tmp_path: Path) -> None:
    class Curious(SimulatedTester):
        def run(self, trial: Any, on_progress: ProgressCallback | None = None) -> Any:
            with pytest.raises(JournalError, match="in another process"), suite.held(tmp_path):
                pass
            return super().run(trial, on_progress)

    tester = Curious(SimulatedDut(capacity_fps=CAPACITY_FPS))
    begun(tmp_path, SimulatedBench(tester))
    assert tester.trials


def test_no_two_trials_of_a_suite_have_one_number(tmp_path: Path) -> None:
    """A late frame is known by its trial's number: it must not count in the part after its own."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=CAPACITY_FPS))
    begun(tmp_path, SimulatedBench(tester))
    numbers = [trial.trial for trial in tester.trials]
    assert numbers == list(range(len(numbers)))


def test_what_was_measured_is_not_written_over(tmp_path: Path) -> None:
    begun(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(JournalError, match="holds the results of another run"):
        begun(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_cannot_be_measured_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    bench = SimulatedBench()
    with pytest.raises(PlanError) as caught:
        suite.begin(
            suite.arrange(wanted(("throughput", conditions()), ("latency", conditions(tag_after_s=1)))),
            bench,
            tmp_path / "out",
            Watched(),
        )
    assert (caught.value.option, bench.tester.trials) == ("tag_after_s", [])
    assert not (tmp_path / "out").exists()


def test_bursts_that_are_possible_are_not_refused_before_the_throughput_is_known(tmp_path: Path) -> None:
    """1,518 bytes on 10 Gbit/s: 812,743 frames/s are the most, also within a burst."""
    chosen = conditions(
        pattern="bursts:32", burst_rate=Rate.parse("100%"), frame_sizes=(1518,), max_rate=Rate.parse("60k")
    )
    made: list[int] = []

    class OnMedia(SimulatedBench):
        def plan(self, conditions: Conditions) -> Plan:
            planned = replace(plan(812_743, **dict(conditions)), conditions=conditions)

            def make_trial(case: Case, load: Load, number: int) -> Any:
                made.append(load.value)
                assert load.value <= 812_743, "the frames of a burst would come more slowly than on average"
                return planned.traffic.trial(case, load, number)

            return making(planned, make_trial)

    suite.begin(suite.arrange(wanted(("latency", chosen))), OnMedia(), tmp_path / "out", Watched())
    assert made


class Cut(SimulatedTester):
    """Is interrupted when it has run so many trials."""

    left: int = 0

    def run(self, trial: Any, on_progress: ProgressCallback | None = None) -> Any:
        if len(self.trials) >= self.left:
            raise KeyboardInterrupt
        return super().run(trial, on_progress)


def timeless(summary: SuiteSummary) -> Any:
    told = summary.model_dump(mode="json")
    for part in told["measurements"]:
        del part["summary"]["environment"]["started"]
    return told


@pytest.mark.parametrize("after", [0, 1, 9, 20, 24, 26, 30, 33])
def test_what_was_cut_off_goes_on_and_ends_as_it_would_have(after: int, tmp_path: Path) -> None:
    expected = timeless(begun(tmp_path / "whole"))
    tester = Cut(SimulatedDut(capacity_fps=CAPACITY_FPS))
    tester.left = after
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path / "cut", SimulatedBench(tester))
    _, measurements = suite.read(tmp_path / "cut")
    assert [one.name for one in measurements] == RUNS
    assert not suite.is_complete(measurements, tmp_path / "cut")
    tester.left = 10**6
    assert timeless(suite.resume(measurements, SimulatedBench(tester), tmp_path / "cut", Watched())) == expected
    assert suite.is_complete(measurements, tmp_path / "cut")
    assert timeless(suite.summarise(measurements, tmp_path / "cut")) == expected


def test_a_run_killed_while_its_plan_was_written_begins_anew(tmp_path: Path) -> None:
    expected = timeless(begun(tmp_path / "whole"))
    begun(tmp_path / "cut")
    directory = tmp_path / "cut" / RUNS[-1]
    (directory / JOURNAL).write_bytes(b'{"event": "pl')
    (directory / "summary.json").unlink()
    _, measurements = suite.read(tmp_path / "cut")
    assert not suite.is_complete(measurements, tmp_path / "cut")
    assert timeless(suite.resume(measurements, SimulatedBench(), tmp_path / "cut", Watched())) == expected


def test_a_dut_that_forwards_nothing_has_nothing_measured_at_its_throughput(tmp_path: Path) -> None:
    bench = SimulatedBench(SimulatedTester(SimulatedDut(dies_after_trials=0)))
    measurements = suite.arrange(wanted(("latency", conditions())))
    summary = suite.begin(measurements, bench, tmp_path, Watched())
    throughput, latency = summary.measurements
    assert throughput.summary is not None
    assert latency == suite.Part(
        name="latency", procedure="latency", note="not measured with 84, 128 bytes: no throughput was found for them"
    )
    assert not (tmp_path / "latency").exists()
    assert suite.is_complete(measurements, tmp_path)
    assert suite.summarise(measurements, tmp_path) == summary


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 9}', '{"format": 1, "measurements": [{}]}'])
def test_what_is_no_suite_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(text)
    with pytest.raises(JournalError, match=r"suite\.json"):
        suite.read(tmp_path)


def test_a_suite_knows_where_its_throughput_is(tmp_path: Path) -> None:
    assert suite.throughput_in(tmp_path, conditions()) == tmp_path
    begun(tmp_path)
    assert suite.throughput_in(tmp_path, conditions(networks=256)) == tmp_path / "throughput-networks256"
    assert journal.is_complete(journal.read(tmp_path / "throughput"))


def test_what_is_measured_at_a_throughput_says_how_that_was_found(tmp_path: Path) -> None:
    """Also where it comes from an earlier run."""
    asked = wanted(("throughput", conditions(loss_tolerance=0.001)), ("pdv", conditions()))
    summary = suite.begin(suite.arrange(asked), SimulatedBench(), tmp_path / "suite", Watched())
    texts = [one.text for part in summary.measurements[1:] if part.summary for one in part.summary.deviations]
    [said] = [text for text in texts if text.startswith("measured at a throughput that was found with")]
    assert "trials of 0.5 s, shorter than 60 s" in said
    assert "up to 0.1 % of a direction's frames lost" in said
    earlier = earlier_throughput(tmp_path / "suite", conditions())
    assert "; ".join(earlier["throughput_deviations"]) in said


class SlowestBench(SimulatedBench):
    """Whose traffic needs 10 frames/s, as directions of 10:1 do."""

    def plan(self, conditions: Conditions) -> Plan:
        ready = super().plan(conditions)

        def trial(case: Case, load: Load, number: int) -> Trial:
            if load.value < 10:
                raise ParameterError("too few frames/s", "direction_rates")
            return ready.traffic.trial(case, load, number)

        return replace(ready, traffic=cast(SiitTraffic, ready.traffic).making(trial))


class OfSizes(SimulatedTester):
    """Tests a DUT that forwards as many frames/s of each size; None: none of them."""

    def __init__(self, capacities_fps: Mapping[int, int | None]) -> None:
        super().__init__()
        self._capacities_fps = capacities_fps

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        [size] = next(iter(trial.streams().values())).sizes
        capacity_fps = self._capacities_fps[size]
        self.dut = SimulatedDut(
            capacity_fps=capacity_fps or 1, dies_after_trials=None if capacity_fps is not None else 0
        )
        return super().run(trial, on_progress)


def test_what_is_measured_at_a_throughput_that_the_tester_limited_says_so(tmp_path: Path) -> None:
    bench = SimulatedBench(SimulatedTester(limits=SimulatedLimits(send_fps=20_000)))
    asked = wanted(("throughput", conditions(max_rate=Rate.parse("50k"))), ("pdv", conditions()))
    summary = suite.begin(suite.arrange(asked), bench, tmp_path, Watched())
    throughput, pdv = (part.summary for part in summary.measurements)
    assert throughput is not None
    assert {point.limit for point in throughput.points} == {LimitedBy.TESTER}
    assert pdv is not None
    assert exit_status(summary) == 0
    text = "the tester's limit, not the DUT's, for 84 and 128 bytes"
    assert any(text in one.text for one in pdv.deviations)
    assert text in earlier_throughput(tmp_path, conditions())["throughput_deviations"]


def test_what_has_no_throughput_because_of_the_tester_is_not_the_duts_fault(tmp_path: Path) -> None:
    """Exit status 3, not 1."""
    drops = SimulatedLimits(receive_fps=1)
    measurements = suite.arrange(wanted(("latency", conditions())))
    summary = suite.begin(measurements, SimulatedBench(SimulatedTester(limits=drops)), tmp_path / "tester", Watched())
    assert summary.measurements[1].note is not None
    assert exit_status(summary) == INVALID
    dead = SimulatedBench(SimulatedTester(SimulatedDut(dies_after_trials=0)))
    assert exit_status(suite.begin(measurements, dead, tmp_path / "dut", Watched())) == NO_NUMBER


def test_the_throughput_of_a_run_that_is_not_complete_says_so(tmp_path: Path) -> None:
    measure(SimulatedTester(), plan(**SHORT), tmp_path)
    whole = earlier_throughput(tmp_path, conditions())["throughput_deviations"]
    lines = (tmp_path / JOURNAL).read_text().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_text("".join(lines[:-1]))
    found = earlier_throughput(tmp_path, conditions())["throughput_deviations"]
    assert found == (*whole, "a part of its repetitions: the run is not complete")


def test_a_share_of_the_throughput_that_is_too_low_does_not_end_the_suite(tmp_path: Path) -> None:
    bench = SlowestBench(OfSizes({84: 50, 128: None, 256: 20_000}))
    chosen = {"frame_sizes": (84, 128, 256), "duration_s": 1.0}
    measurements = suite.arrange(
        wanted(("load-latency", conditions(**chosen, loads=(10,))), ("latency", conditions(**chosen)))
    )
    summary = suite.begin(measurements, bench, tmp_path, Watched())
    throughput, loads, latency = summary.measurements
    assert throughput.summary is not None
    assert loads.summary is not None
    assert [point.case[FRAME_SIZE] for point in loads.summary.points] == [256]
    assert loads.note == (
        "not measured with 84 bytes: direction_rates: too few frames/s; "
        "not measured with 128 bytes: no throughput was found for them"
    )
    assert latency.summary is not None
    assert [point.case[FRAME_SIZE] for point in latency.summary.points] == [84, 256]
    assert suite.is_complete(measurements, tmp_path)
    assert suite.summarise(measurements, tmp_path) == summary


@pytest.mark.parametrize("name", ["../../elsewhere", "/srv/elsewhere", "a/b", "..", ".", "", "a\0b", None])
def test_a_suite_has_its_measurements_in_its_own_folders(tmp_path: Path, suite_directory: Path, name: object) -> None:
    """It may come from anybody, and is written to where it is resumed."""
    document = json.loads((suite_directory / "suite.json").read_text())
    document["measurements"][0]["name"] = name
    (tmp_path / "suite.json").write_text(json.dumps(document))
    for read in (suite.read, results.read):
        with pytest.raises(JournalError, match="is not the name of a folder"):
            read(tmp_path)
