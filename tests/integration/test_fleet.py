# SPDX-License-Identifier: Apache-2.0
"""Two testbeds on this machine under Buildbot and under Slurm, each job in namespaces of its own: workers killed in the
middle, the master restarted, a testbed that is lost for a while. Nothing that was measured is lost, or measured twice.
Root only.
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
        pytest.skip("needs Python's '.[fleet]'")
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


def jobs_in(folder: Path) -> list[Path]:
    """Of the plan."""
    (folder / "p.yaml").write_text(PLAN)
    assert dutperf("plan", "split", str(folder / "p.yaml"), "--into", str(folder / "jobs")).returncode == 0
    return sorted((folder / "jobs").iterdir())


def check_each_ended_once(jobs: list[Path], kept: Path, store: Path) -> None:
    """Wait for the results of all jobs, which come into ``kept``, then into ``store``."""
    ends_s = time.monotonic() + LONGEST_S
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


def test_whatever_is_killed_every_job_ends_once(fleet: Path, tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
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
    check_each_ended_once(jobs, fleet / "master" / "results", fleet / "master" / "store.sqlite")


# --- Slurm ----------------------------------------------------------------------------------------

SLURM = ("munged", "slurmctld", "slurmd", "sbatch")
LOST_S = 25
"""Longer than the controller waits for a node (SlurmdTimeout)."""
CONFIGURATION = """\
ClusterName=dutperf-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=26817
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
JobRequeue=1
ReturnToService=2
SlurmdTimeout=15
SlurmctldTimeout=60
NodeName={first} NodeHostname={host} NodeAddr=127.0.0.1 Port=27001 State=UNKNOWN
NodeName={second} NodeHostname={host} NodeAddr=127.0.0.1 Port=27002 State=UNKNOWN
PartitionName=testbeds Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Debian's Slurm with two nodes on loopback, from a configuration of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "state").mkdir(parents=True)
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        folder.chmod(0o755)
        members = {"host": os.uname().nodename.partition(".")[0], "folder": folder}
        first, second = TESTBEDS
        (folder / "slurm.conf").write_text(CONFIGURATION.format(first=first, second=second, **members))
        files = {f"--{name}-file": folder / f"munge.{name}" for name in ("pid", "log", "seed")}
        given = [f"{option}={path}" for option, path in files.items()]
        self._start(
            "munge",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={folder}/key",
            f"--socket={folder}/munge.socket",
            *given,
        )
        self.start_controller()
        for name in TESTBEDS:
            self.start_node(name)

    def _start(self, name: str, *argv: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(argv, env=self.environment, stdout=out, stderr=out)

    def start_controller(self) -> None:
        self._start("controller", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))

    def start_node(self, name: str) -> None:
        self._start(name, "slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf"))

    def kill(self, name: str) -> None:
        self._daemons[name].kill()
        self._daemons[name].wait()

    def lose(self, node: str) -> None:
        """The node and what it runs, as when its host loses power."""
        running = self.ask("squeue", "--noheader", "--nodelist", node, "--states", "RUNNING", "--format", "%A").split()
        self.kill(node)
        for job in running:
            call("pkill", "--signal", "KILL", "--full", rf"^slurmstepd: \[{job}\.", check=False)
            for own in processes_with(f"SLURM_JOB_ID={job}".encode()):
                with suppress(OSError):
                    os.kill(own, signal.SIGKILL)

    def ask(self, *argv: str) -> str:
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout

    def submit(self, script: Path, node: str, *arguments: object, store: Path) -> None:
        argv = ["sbatch", "--nodelist", node, f"--output={self.folder}/%j.txt", f"--export=ALL,DUTPERF_STORE={store}"]
        done = subprocess.run(
            [*argv, str(script), *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def hurry(self) -> None:
        """A job that was requeued waits two minutes first: a person would."""
        for line in self.ask("squeue", "--noheader", "--states", "PENDING", "--format", "%A %r").splitlines():
            job, _, reason = line.partition(" ")
            if reason.strip() == "BeginTime":
                self.ask("scontrol", "update", f"JobId={job}", "StartTime=now")

    def close(self) -> None:
        self.ask("scancel", "--signal=KILL", "--full", "--user=root")
        for node in TESTBEDS:
            self.lose(node)
        for name in ("controller", "munge"):
            self.kill(name)


def processes_with(entry: bytes) -> Iterator[int]:
    """Processes with this in their environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if entry in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if any(shutil.which(name) is None for name in SLURM):
        pytest.skip("needs Debian's slurmctld, slurmd, slurm-client, munge")
    made = Cluster(tmp_path / "slurm")
    yield made
    made.close()
    for name in TESTBEDS:
        file_of(name).unlink(missing_ok=True)


def test_under_slurm_too(cluster: Cluster, tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
    command = str(Path(sys.executable).with_name("dutperf"))
    named = [word for name in TESTBEDS for word in ("--testbed", name)]
    made = dutperf("fleet", "init", str(tmp_path / "made"), "--scheduler", "slurm", "--command", command, *named)
    assert made.returncode == 0, made.stderr
    results, store = tmp_path / "results", tmp_path / "store.sqlite"
    until_s = time.monotonic() + 60
    while cluster.ask("sinfo", "--noheader", "--states", "idle", "--format", "%D").strip() != "2":
        assert time.monotonic() < until_s, cluster.ask("sinfo", "--long")
        time.sleep(0.5)
    for number, job in enumerate(jobs):
        node = TESTBEDS[number % len(TESTBEDS)]
        cluster.submit(tmp_path / "made" / "job.sbatch", node, job, results / job.stem, store=store)
    chance = random.Random(2)
    for number in range(KILLS):
        time.sleep(chance.uniform(1.5, 4))
        cluster.hurry()
        node = chance.choice(TESTBEDS)
        if number % 3 == 1:
            cluster.kill("controller")
            cluster.start_controller()
            continue
        cluster.lose(node)
        time.sleep(LOST_S if number % 3 == 2 else 0)
        cluster.start_node(node)
    ends_s = time.monotonic() + LONGEST_S
    while time.monotonic() < ends_s and cluster.ask("squeue", "--noheader").strip():
        cluster.hurry()
        time.sleep(1)
    check_each_ended_once(jobs, results, store)
