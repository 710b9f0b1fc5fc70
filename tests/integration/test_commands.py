# SPDX-License-Identifier: Apache-2.0
"""The commands as a user gives them, on real DUTs: known truth, clear endings, and nothing left
behind. Root only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dutperf.exit_status import NOT_NOW, WRONG_USAGE
from printed import printed
from undisturbed import until

pytestmark = pytest.mark.root

QUICK = ["--duration", "0.5", "--drain", "0.2"]


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A dutperf command under way. Ctrl-C reaches it, also where a shell that runs these tests in
    the background had it ignored."""
    command = [sys.executable, "-m", "dutperf", *arguments]
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeds, **options
    )


def dutperf(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A dutperf command that has ended."""
    process = start(*arguments, **options)
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def measured(tmp_path: Path, right: Callable[[float], bool], *arguments: str) -> dict[str, Any]:
    """The summary of the first throughput run, of one frame size, whose median is ``right`` or was
    not limited by the tester, as a busy machine limits it."""
    runs = count()

    def measure() -> dict[str, Any]:
        done = dutperf(
            "throughput", *arguments, "--repetitions", "1", "--json", "--out", str(tmp_path / f"out{next(runs)}")
        )
        summary: dict[str, Any] = printed(done)
        assert done.returncode == 0 or summary["points"][0]["limited_by"] == "tester", done.stderr
        return summary

    def shows(summary: dict[str, Any]) -> bool:
        [point] = summary["points"]
        median = point["throughput_fps"]["median"]
        return point["limited_by"] != "tester" or (median is not None and right(median))

    found = until(measure, shows, lambda summary: str(summary["points"][0]["message"]), fewest=1)
    print(found["points"][0]["limited_by"], found["points"][0]["throughput_fps"])
    return found


def namespaces() -> set[str]:
    """Network namespaces of labs."""
    return {path.name for path in Path("/run/netns").glob("dutperf-*")}


def engines() -> set[int]:
    """Engines that this test's commands started, orphans included."""
    all_ = {
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _name(path).startswith("dutperf-engine")
    }
    return {pid for pid in all_ if _descends_from(pid, os.getpid()) or _parent(pid) == 1}


def wait_until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Return when ``condition`` has come true."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)


def journal(directory: Path) -> str:
    """What a run has written so far."""
    file = directory / "journal.jsonl"
    return file.read_text() if file.exists() else ""


def _name(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Any:
    before = namespaces(), engines()
    yield
    assert (namespaces() - before[0], engines() - before[1]) == (set(), set())


def configuration(tmp_path: Path, **changes: Any) -> Path:
    """A configuration file of two ``null`` ports, with changes to the left one."""
    side = {"port": "null", "version": 4, "ipv4": "198.18.0.2/24"}
    file = tmp_path / "setup.yaml"
    file.write_text(
        json.dumps({"left": side | changes, "right": {"port": "null", "version": 4, "ipv4": "198.19.0.2/24"}})
    )
    return file


BAD_CONFIGURATIONS = [
    pytest.param({"gatway4": "198.18.0.1"}, [], "gateway4", id="unknown key"),
    pytest.param({"port": "af_packet:nosuch0"}, [], "nosuch0", id="missing interface"),
    pytest.param({"port": "eth:0"}, [], "left.port", id="port spec"),
    pytest.param({}, ["--frame-size", "63"], "--frame-size", id="frame size too small"),
    pytest.param({}, ["--frame-size", "9217"], "--frame-size", id="frame size too large"),
    pytest.param({"version": 6, "ipv6": "2001:2::2/64"}, [], "seen_as", id="no translated address"),
    pytest.param({"gateway4": "198.18.0.1"}, [], "gateway4", id="no answer to ARP"),
    pytest.param({}, ["--foreground", "2:3"], "--foreground", id="impossible mix"),
    pytest.param({}, ["--rate", "fast"], "--rate", id="no rate"),
]


@pytest.mark.parametrize(("changes", "arguments", "named"), BAD_CONFIGURATIONS)
def test_bad_input_gets_one_clear_sentence(
    tmp_path: Path, changes: dict[str, Any], arguments: list[str], named: str
) -> None:
    done = dutperf("trial", "--config", str(configuration(tmp_path, **changes)), *QUICK, "--rate", "1000", *arguments)
    assert done.returncode == WRONG_USAGE
    assert named in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stdout == ""


def test_an_interface_that_is_gone_may_come_back(tmp_path: Path) -> None:
    file = configuration(tmp_path, port="af_packet:nosuch0")
    file.write_text(file.read_text().replace('"null"', '"af_packet:nosuch1"'))
    done = dutperf("trial", "--config", str(file), *QUICK, "--rate", "1000")
    assert (done.returncode, done.stdout) == (NOT_NOW, "")
    assert "there is no interface 'nosuch0'" in done.stderr


def test_no_root_is_said(tmp_path: Path) -> None:
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    readable = {"env": os.environ | {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}}
    try:
        subprocess.run([sys.executable, "-c", "import dutperf"], **nobody, **readable, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the package lies where only root may read")
    done = dutperf("trial", "--lab", "kernel-ipv4", "--rate", "1000", **nobody, **readable)
    assert done.returncode == 2
    assert "root" in done.stderr
    assert "Traceback" not in done.stderr


def test_trial_gives_one_json_object() -> None:
    done = dutperf("trial", "--lab", "tayga-siit", "--rate", "2000", *QUICK, "--json")
    result = printed(done)
    assert done.returncode == {"valid": 0, "invalid": 3}[result["verdict"]]
    counts = (
        "intended sent received lost foreground_received background_received duplicates out_of_order stale corrupted"
    )
    evidence = "send_time_s lateness_us tester_drops other_received"
    for direction in ("forward", "reverse"):
        assert set(f"{counts} {evidence}".split()) <= set(result[direction])
    assert (result["frame_size"], result["frame_size_ipv4"]) == (84, 64)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    process = start("throughput", "--lab", "tayga-siit", "--duration", "5", "--out", str(tmp_path / "out"))
    wait_until(lambda: '"event": "trial"' in journal(tmp_path / "out"))
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert '"end"' in journal(tmp_path / "out")


@pytest.mark.long
def test_known_truth(tmp_path: Path) -> None:
    """A router that lets through 60,000 frames/s and a bucket of 1,000: in 1 s trials 61,000."""
    narrow = ["--min-rate", "58000", "--max-rate", "64000", "--resolution", "300"]
    router = [
        "--lab",
        "kernel-ipv4",
        "--lab-option",
        "limit_fps=60000",
        "--lab-option",
        "burst=1000",
        "--directions",
        "forward",
    ]
    [point] = measured(tmp_path, lambda _: False, *router, *narrow, "--duration", "1", "--drain", "0.3")["points"]
    assert point["limited_by"] == "dut"
    assert point["throughput_fps"]["median"] == pytest.approx(61_000, rel=0.01)


@pytest.mark.long
def test_random_loss_with_and_without_tolerance(tmp_path: Path) -> None:
    """With one frame in 1,000 lost, no loss at all is a matter of few frames; a tolerance finds
    what the router can do."""
    right: dict[str, Callable[[float], bool]] = {"0": lambda fps: fps < 30_000, "0.005": lambda fps: fps == 40_000}
    for tolerance in right:
        loss = [
            "--lab",
            "kernel-ipv4",
            "--lab-option",
            "loss=0.001",
            "--directions",
            "forward",
            "--loss-tolerance",
            tolerance,
        ]
        search = ["--max-rate", "40000", "--duration", "1", "--drain", "0.2", "--resolution", "5%"]
        summary = measured(tmp_path / tolerance, right[tolerance], *loss, *search)
        assert right[tolerance](summary["points"][0]["throughput_fps"]["median"])
        assert summary["conditions"]["loss_tolerance"] == float(tolerance)


@pytest.mark.long
def test_frame_loss_of_a_known_router(tmp_path: Path) -> None:
    """A router that lets through 10,000 frames/s and a bucket of 200: what is lost at each rate is
    what is beyond that."""
    router = [
        "--lab",
        "kernel-ipv4",
        "--lab-option",
        "limit_fps=10000",
        "--lab-option",
        "burst=200",
        "--directions",
        "forward",
    ]
    done = dutperf(
        "frame-loss",
        *router,
        "--rates",
        "5k,20k,40k",
        "--duration",
        "1",
        "--drain",
        "0.3",
        "--json",
        "--out",
        str(tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    [point] = printed(done)["points"]
    assert [rate["load"]["value"] for rate in point["rates"]] == [40_000, 20_000, 5_000]
    for rate in point["rates"]:
        if rate["limited_by"] is None:
            assert rate["loss_ratio"]["worst"]["median"] == pytest.approx(
                max(0, 1 - 10_200 / rate["load"]["value"]), abs=0.01
            )
    assert point["first_lossless_fps"] == 5_000


@pytest.mark.long
def test_a_known_bucket_is_the_longest_burst(tmp_path: Path) -> None:
    """A bucket of 64 that fills at 20,000/s while 40,000/s are taken from it holds for 128 frames:
    within a frame, and twice what the DUT could forward while frames left late."""
    router = [
        "--lab",
        "kernel-ipv4",
        "--lab-option",
        "limit_fps=20000",
        "--lab-option",
        "burst=64",
        "--directions",
        "forward",
    ]
    rates = ["--rate", "20k", "--max-rate", "40k", "--repetitions", "1", "--drain", "0.1"]
    done = dutperf("back-to-back", *router, *rates, "--json", "--out", str(tmp_path / "out"))
    [point] = printed(done)["points"]
    error = 2 + 2 * point["timing_frames"]
    assert point["timing_frames"] <= 8
    if point["limited_by"] == "dut":
        assert point["average_frames"] == pytest.approx(128, abs=error)
        assert point["corrected_buffer_s"] == pytest.approx(64 / 40_000, abs=error / 80_000 + 1e-9)
    else:  # a machine that is too busy for such short bursts says so
        assert point["limited_by"] == "tester"
        assert (point["average_frames"] or 0) <= 128 + error


def test_a_gateway_that_dies_ends_the_search_without_a_number(tmp_path: Path) -> None:
    process = start(
        "throughput", "--lab", "tayga-siit", *QUICK, "--repetitions", "3", "--json", "--out", str(tmp_path / "out")
    )
    wait_until(lambda: journal(tmp_path / "out").count('"result"') >= 2)
    [pid] = [pid for pid in _taygas() if _descends_from(pid, process.pid)]
    os.kill(pid, signal.SIGKILL)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    point = json.loads(output)["points"][0]
    assert point["throughput_fps"]["median"] is None
    assert "forward" in point["message"]
    assert "nothing" in point["message"]


def _descends_from(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = _parent(pid)
        if pid == ancestor:
            return True
    return False


def _parent(pid: int) -> int:
    """Of a process; 0 where it is gone."""
    fields = _name(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _taygas() -> list[int]:
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _name(path).strip() == "tayga"]


@pytest.mark.long
def test_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    journal = tmp_path / "out" / "journal.jsonl"
    router = [
        "--lab",
        "kernel-ipv4",
        "--lab-option",
        "limit_fps=50000",
        "--lab-option",
        "burst=1000",
        "--directions",
        "forward",
    ]
    search = [
        "--max-rate",
        "1000",
        "--repetitions",
        "5",
        "--duration",
        "0.3",
        "--drain",
        "0.1",
        "--settle",
        "0.1",
        "--learning-rest",
        "0.05",
    ]
    process = start("throughput", *router, *search, "--out", str(tmp_path / "out"))
    deadline = time.monotonic() + 60
    while (
        not (journal.exists() and journal.read_text().count('"event": "result"') >= 2) and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    meanwhile = dutperf("resume", str(tmp_path / "out"))
    assert meanwhile.returncode == NOT_NOW
    assert "in another process" in meanwhile.stderr
    process.kill()
    process.communicate()
    before = journal.read_bytes()
    done = dutperf("resume", str(tmp_path / "out"), "--json")
    assert done.returncode == 0, done.stderr
    summary = printed(done)
    assert len(summary["points"][0]["throughput_fps"]["values"]) == 5
    assert "ended early" not in summary["points"][0]["message"]
    assert journal.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
    kinds = [json.loads(line)["event"] for line in journal.read_text().splitlines()]
    assert (kinds.count("plan"), kinds.count("resumed"), kinds.count("search"), kinds[-1]) == (1, 1, 5, "end")
    assert dutperf("resume", str(tmp_path / "out")).returncode == 0


def test_two_commands_at_once_do_no_harm() -> None:
    processes = [start("trial", "--lab", "kernel-ipv6", "--rate", "500", *QUICK, "--json") for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 3), errors
        assert json.loads(output)["forward"]["sent"] == 250


def test_doctor_advises() -> None:
    done = dutperf("doctor")
    assert done.returncode == 0
    assert "huge pages" in done.stdout.lower()


@pytest.mark.parametrize(
    ("lab", "option", "cause"), [("refdut-ipv4", "loss_every=10", "every_nth"), ("kernel-ipv4", "loss=0.1", "random")]
)
def test_a_trial_shows_the_duts_own_count(lab: str, option: str, cause: str) -> None:
    """Whether the trial is valid does not matter here."""
    done = dutperf(
        "trial",
        "--lab",
        lab,
        "--lab-option",
        option,
        "--rate",
        "2000",
        "--duration",
        "0.5",
        "--drain",
        "0.3",
        "--json",
    )
    report = printed(done)
    for direction in ("forward", "reverse"):
        counted, counts = report["dut_losses"][direction][cause], report[direction]
        elsewhere = counts["dut_input_drops"] + sum(counts["tester_drops"].values())
        assert counts["lost"] - elsewhere <= counted <= counts["lost"]
        assert counted == pytest.approx(counts["sent"] / 10, rel=0.5)
