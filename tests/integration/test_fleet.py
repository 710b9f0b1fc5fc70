# SPDX-License-Identifier: Apache-2.0
"""Two testbeds under Buildbot on this machine, each job in namespaces of its own: workers killed in the middle, the
master restarted, a testbed that is lost for a while. Nothing that was measured is lost, or measured twice. Root only.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dutperf.run.lease import file_of
from dutperf.store import Store

from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.usefixtures("lab_records")]

BUILDBOT, WORKER = (shutil.which(name, path=Path(sys.executable).parent) for name in ("buildbot", "buildbot-worker"))
TESTBEDS = ("fleet-test-a", "fleet-test-b")
KILLS = 10
LONGEST_S = 400
PLAN = """\
lab: kernel-ipv4
all: {frame-sizes: [64, 128, 256, 512], duration: 0.3, drain: 0.1, repetitions: 2}
procedures:
  throughput: {max-rate: 8000, resolution: 2000}
  frame-loss: {rates: [1k, 2k, 3k]}
"""


def call(*argv: object, check: bool = True) -> None:
    subprocess.run(list(map(str, argv)), check=check, capture_output=True, timeout=120)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Path]:
    if BUILDBOT is None or WORKER is None:
        pytest.skip("pip install 'dutperf[fleet]' installs Buildbot")
    directory = tmp_path / "fleet"
    made = dutperf(
        *("fleet", "init", str(directory), "--command", str(Path(sys.executable).with_name("dutperf"))),
        *(word for name in TESTBEDS for word in ("--testbed", name)),
    )
    assert made.returncode == 0, made.stderr
    call(BUILDBOT, "create-master", "--relocatable", directory / "master")
    call(BUILDBOT, "start", directory / "master")
    for name in TESTBEDS:
        call(WORKER, "start", directory / f"worker-{name}", check=False)
    yield directory
    for name in TESTBEDS:
        kill_worker(directory / f"worker-{name}")
        file_of(name).unlink(missing_ok=True)
    call(BUILDBOT, "stop", directory / "master", check=False)


def kill_worker(directory: Path) -> None:
    """It and what it runs, as when its host loses power."""
    with suppress(OSError, ValueError):
        worker = int((directory / "twistd.pid").read_text())
        below = subprocess.run(["pgrep", "--parent", str(worker)], capture_output=True, text=True, check=False).stdout
        os.kill(worker, signal.SIGKILL)
        for job in below.split():
            with suppress(OSError):
                os.killpg(int(job), signal.SIGKILL)
    (directory / "twistd.pid").unlink(missing_ok=True)


def test_whatever_is_killed_every_job_ends_once(fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PLAN)
    assert dutperf("plan", "split", str(tmp_path / "p.yaml"), "--into", str(tmp_path / "jobs")).returncode == 0
    jobs = sorted((tmp_path / "jobs").iterdir())
    done = dutperf("fleet", "submit", str(fleet), *map(str, jobs), "--buildbot", str(BUILDBOT))
    assert done.returncode == 0, done.stderr
    chance = random.Random(1)
    for number in range(KILLS):
        time.sleep(chance.uniform(1.5, 4))
        worker = fleet / f"worker-{chance.choice(TESTBEDS)}"
        kind = number % 3
        if kind == 0:
            kill_worker(worker)
            call(WORKER, "start", worker, check=False)
        elif kind == 1:
            call(BUILDBOT, "stop", fleet / "master", check=False)
            call(BUILDBOT, "start", fleet / "master", check=False)
        else:
            kill_worker(worker)
            time.sleep(8)
            call(WORKER, "start", worker, check=False)
    ends_s = time.monotonic() + LONGEST_S
    kept = fleet / "master" / "results"
    store = fleet / "master" / "store.sqlite"
    while time.monotonic() < ends_s:
        if store.exists():
            with Store(store) as opened:
                if len([one for one in opened.find() if one.complete]) == 2 * len(jobs):
                    break
        time.sleep(1)
    assert sorted(path.name for path in kept.iterdir()) == sorted(job.stem for job in jobs)
    resumed = 0
    for journal in kept.glob("*/*/journal.jsonl"):
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        results = [event["trial"] for event in events if event["event"] == "result"]
        assert len(results) == len(set(results)), f"{journal}: a trial was measured twice"
        assert events[-1]["event"] == "end"
        resumed += sum(event["event"] == "resumed" for event in events)
    with Store(store) as opened:
        assert len([one for one in opened.find() if one.complete]) == 2 * len(jobs)
    assert resumed, "nothing was cut off in the middle: the test shows nothing"
