# SPDX-License-Identifier: Apache-2.0
"""Jobs for several testbeds: plans that are split, runs that are started any number of times, leases."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import dutperf, write
from dutperf.cli import plan_file
from dutperf.cli.commands.plan import jobs_of
from dutperf.exit_status import NOT_NOW
from dutperf.fleet import SHORT_PAUSE_S, divided
from dutperf.journal import EndEvent, JournalError, JournalWriter, held, new_and_held
from dutperf.journal.files import BeingWritten
from dutperf.run import lease
from dutperf.run.lease import LeaseError
from dutperf.run.progress import PROGRESS
from dutperf.run.suite import FORMAT, PLAN, SUITE
from dutperf.setup.configuration import ConfigError

TESTBED = f"unit-test-{os.getpid()}"


def a_plan(tmp_path: Path, **of_all: Any) -> Path:
    config = write(tmp_path, "Engine")
    shared = {"duration": 0.01, "drain": 0, "repetitions": 1, **of_all}
    search = {"max-rate": 8000, "initial-rate": 1000, "resolution": 500}
    plan = {"config": config.name, "all": shared, "procedures": {"throughput": search, "frame-loss": {"rates": [1000]}}}
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan, sort_keys=False))
    return file


@pytest.fixture
def lease_file() -> Iterator[Path]:
    path = lease.file_of(TESTBED)
    yield path
    path.unlink(missing_ok=True)


# --- splitting ------------------------------------------------------------------------------------


def measured(file: Path) -> set[tuple[Any, ...]]:
    """What a plan measures: procedure, frame size and numbers of networks, each once."""
    wanted = plan_file.load(file).wanted
    return {
        (definition.name, size, one.networks, str(one.foreground))
        for definition, one in wanted
        for size in one.frame_sizes
    }


def test_the_jobs_measure_together_what_the_plan_does(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, **{"frame-sizes": [64, 128, 1518], "networks": "1,256"})
    done = dutperf("plan", "split", plan, "--into", tmp_path / "jobs")
    assert done.exit_code == 0, done.stderr
    files = sorted((tmp_path / "jobs").iterdir())
    assert {file.stem for file in files} == {f"plan-{size}-networks{n}" for size in (64, 128, 1518) for n in (1, 256)}
    parts = [measured(file) for file in files]
    assert set.union(*parts) == measured(plan)
    assert sum(map(len, parts)) == len(measured(plan)), "nothing is measured twice"


def test_what_has_no_frame_sizes_or_networks_is_measured_in_one_job_alone(tmp_path: Path) -> None:
    of_all = {"frame-size": [64, 128], "networks": "1,256"}
    plan = {"lab": "loopback", "all": of_all, "procedures": {"dns64": None, "broadcast": None, "pdv": None}}
    jobs = {name: sorted(job["procedures"]) for name, job in jobs_of(plan, tmp_path)}
    assert jobs == {
        "64-networks1": ["broadcast", "dns64", "pdv"],
        "64-networks256": ["pdv"],
        "128-networks1": ["broadcast", "pdv"],
        "128-networks256": ["pdv"],
    }


def test_a_plan_with_one_mix_is_one_job(tmp_path: Path) -> None:
    assert [name for name, _ in jobs_of({"lab": "kernel-ipv4", "procedures": {"pdv": None}}, tmp_path)] == ["all"]


def test_values_of_one_procedure_alone_are_not_divided(tmp_path: Path) -> None:
    plan = {"all": {"frame-size": [64, 128]}, "procedures": {"pdv": {"frame-size": [84]}, "latency": {}}}
    assert len(list(jobs_of(plan, tmp_path))) == 1


def test_paths_of_a_plan_are_those_of_its_jobs(tmp_path: Path) -> None:
    """Relative ones are meant from the plan's own directory, which is not that of the jobs."""
    plan = {"all": {"frame-size": [64, 128]}, "procedures": {"latency": {"delays-to": "delays"}, "pdv": None}}
    for _, job in jobs_of(plan, tmp_path):
        assert job["procedures"]["latency"] == {"delays-to": str(tmp_path / "delays")}
        assert job["procedures"]["pdv"] is None


def test_jobs_are_written_into_a_new_directory_only(tmp_path: Path) -> None:
    done = dutperf("plan", "split", a_plan(tmp_path), "--into", tmp_path)
    assert (done.exit_code, "is not empty" in done.stderr) == (2, True)


def test_a_plan_is_checked_without_measuring(tmp_path: Path) -> None:
    done = dutperf("plan", "check", a_plan(tmp_path), "--json")
    assert [one["procedure"] for one in json.loads(done.stdout)] == ["throughput", "frame-loss"]
    bad = tmp_path / "bad.yaml"
    bad.write_text("lab: kernel-ipv4\nprocedures: {through: {}}\n")
    done = dutperf("plan", "check", bad)
    assert done.exit_code == 2
    assert "did you mean throughput?" in done.stderr


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("lab: nosuch", "no lab is called nosuch"),
        ("lab: kernel-ipv4\nlab-options: {nosuch: 1}", "unknown option nosuch"),
        ("config: gone.yaml", "bad.yaml, line 1: config: there is no "),
        ("config: broken.yaml", "broken.yaml, line 1: lef: unknown key; did you mean left?"),
    ],
)
def test_the_check_of_a_plan_finds_a_setup_that_cannot_be_used(source: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("lef: {}\n")
    bad = tmp_path / "bad.yaml"
    bad.write_text(f"{source}\nprocedures: {{throughput: {{}}}}\n")
    done = dutperf("plan", "check", bad)
    assert (done.exit_code, words in done.stderr) == (2, True), done.stderr


def test_a_mix_is_one_frame_size_though_it_has_commas(tmp_path: Path) -> None:
    plan = {"all": {"frame-size": "imix:64=7,594=4,1518=1"}, "procedures": {"pdv": None}}
    assert [job["all"]["frame-size"] for _, job in jobs_of(plan, tmp_path)] == ["imix:64=7,594=4,1518=1"]


def test_the_capture_of_a_frame_is_named_from_the_plan(tmp_path: Path) -> None:
    plan = {"lab": "kernel-ipv4", "procedures": {"throughput": {"frame-from": "one.pcap:3"}}}
    [(_, job)] = jobs_of(plan, tmp_path)
    assert job["procedures"]["throughput"] == {"frame-from": f"{tmp_path / 'one.pcap'}:3"}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(ConfigError, match=f"cannot read {tmp_path / 'one.pcap'}"):
        plan_file.load(tmp_path / "plan.yaml")
    given = {"lab": "kernel-ipv4", "procedures": {"latency": {"throughput-from": ["a", "b"]}}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(given))
    with pytest.raises(ConfigError, match="takes one value, not a list"):
        plan_file.load(tmp_path / "plan.yaml")


# --- started any number of times ------------------------------------------------------------------


def run(plan: Path, out: Path, *more: str) -> Any:
    return dutperf("run", plan, "--out", out, "--or-resume", *more)


def test_a_job_that_is_started_again_measures_nothing_again(tmp_path: Path) -> None:
    plan, out = a_plan(tmp_path, **{"frame-size": 84}), tmp_path / "out"
    assert run(plan, out).exit_code in (0, 1)
    before = {path: path.read_bytes() for path in out.rglob("journal.jsonl")}
    assert len(before) == 2
    assert not (out / PROGRESS).exists(), "nothing is under way"
    assert "is complete" in run(plan, out).stderr
    assert {path: path.read_bytes() for path in out.rglob("journal.jsonl")} == before


def test_it_refuses_the_directory_of_another_plan(tmp_path: Path) -> None:
    plan, out = a_plan(tmp_path, **{"frame-size": 84}), tmp_path / "out"
    run(plan, out)
    again = run(a_plan(tmp_path, **{"frame-size": 128}), out)
    assert again.exit_code == 2
    assert "has the run of another plan" in again.stderr
    assert "needs --out" in dutperf("run", plan, "--or-resume").stderr


def test_it_says_how_to_go_on_with_a_run_that_was_begun_without_it(tmp_path: Path) -> None:
    plan, out = a_plan(tmp_path, **{"frame-size": 84}), tmp_path / "out"
    assert dutperf("run", plan, "--out", out).exit_code in (0, 1)
    again = run(plan, out)
    told = " ".join(again.stderr.split())
    assert again.exit_code == 2
    assert "was begun without it, so its plan is not kept: dutperf resume" in told


@pytest.mark.parametrize("source", [{"lab_options": {"cores": "1"}}, {}])
def test_it_refuses_a_run_with_other_options_of_the_lab(tmp_path: Path, source: dict[str, Any]) -> None:
    """They are not in the plan."""
    plan, out = a_plan(tmp_path), tmp_path / "out"
    text = {"lab": "refdut-ipv4", "procedures": yaml.safe_load(plan.read_text())["procedures"]}
    plan.write_text(yaml.safe_dump(text))
    out.mkdir()
    (out / PLAN).write_bytes(plan.read_bytes())
    document = {"format": FORMAT, "source": {"lab": "refdut-ipv4", **source}, "measurements": []}
    (out / SUITE).write_text(json.dumps(document))
    again = run(plan, out, "--lab-option", "cores=2")
    assert (again.exit_code, "has a run with other options of the lab" in again.stderr) == (2, True), again.stderr


def test_a_job_that_is_started_twice_at_once_measures_once(tmp_path: Path) -> None:
    """The second one leaves a journal alone that the first has just created, and in which nothing stands yet."""
    plan, out = a_plan(tmp_path, **{"frame-size": 84}), tmp_path / "out"
    out.mkdir()
    (out / PLAN).write_bytes(plan.read_bytes())
    with JournalWriter.create(out) as first:
        for again in (run(plan, out), dutperf("run", plan, "--out", out)):
            assert again.exit_code in (NOT_NOW, 2)
        first.write(EndEvent(outcome="error", message="it is still there"))
    assert "it is still there" in (out / "journal.jsonl").read_text()
    with held(out / "plan.yaml"):
        again = run(plan, out)
    assert (again.exit_code, "is being written" in again.stderr) == (NOT_NOW, True)


def test_two_suites_at_once_do_not_both_begin(tmp_path: Path) -> None:
    second = held(tmp_path / "suite.json")
    with new_and_held(tmp_path / "suite.json", "{}"), pytest.raises(BeingWritten), second:
        pass
    with pytest.raises(JournalError, match="there is already"), new_and_held(tmp_path / "suite.json", "other"):
        pass
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("suite.json", "{}")]


def test_it_begins_where_it_was_killed_before_its_first_line(tmp_path: Path) -> None:
    plan, out = a_plan(tmp_path, **{"frame-size": 84}), tmp_path / "out"
    mapping = yaml.safe_load(plan.read_text())
    del mapping["procedures"]["frame-loss"]
    plan.write_text(yaml.safe_dump(mapping))
    out.mkdir()
    (out / "journal.jsonl").write_text('{"event": "pl')
    assert run(plan, out).exit_code in (0, 1)
    assert (out / "summary.json").exists()


# --- leases ---------------------------------------------------------------------------------------

HOLD = f"""
import sys, time
from dutperf.run import lease
with lease.leased({TESTBED!r}):
    print("leased", flush=True)
    time.sleep(60)
"""


def holder() -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "leased\n"
    return process


@pytest.mark.usefixtures("lease_file")
def test_a_second_owner_is_refused_by_name_and_has_it_when_the_first_was_killed(tmp_path: Path) -> None:
    process = holder()
    done = run(a_plan(tmp_path), tmp_path / "out", "--testbed", TESTBED)
    assert done.exit_code == NOT_NOW
    assert f"testbed {TESTBED} is in use by " in done.stderr
    assert f"process {process.pid}, since" in done.stderr
    assert not (tmp_path / "out").exists()
    owner = json.loads(dutperf("testbeds", "--json").stdout)[TESTBED]
    assert owner["pid"] == process.pid
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert lease.owner(TESTBED) is None
    assert run(a_plan(tmp_path), tmp_path / "out", "--testbed", TESTBED).exit_code in (0, 1)


@pytest.mark.usefixtures("lease_file")
def test_one_that_waits_has_it_next() -> None:
    process = holder()
    told: list[str] = []

    def waiting(sentence: str) -> None:
        told.append(sentence)
        process.kill()

    with lease.leased(TESTBED, 20, waiting):
        assert (lease.owner(TESTBED) or {})["pid"] == os.getpid()
    assert len(told) == 1
    process.wait()


@pytest.mark.usefixtures("lease_file")
def test_waiting_ends() -> None:
    process = holder()
    began_s = time.monotonic()
    with pytest.raises(LeaseError, match=r"waited 0\.7 s"), lease.leased(TESTBED, 0.7):
        pass
    assert time.monotonic() - began_s < 5
    process.kill()
    process.wait()


def test_the_heart_beats(lease_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_S", 0.01)
    with lease.leased(TESTBED):
        os.utime(lease_file, (0, 0))
        time.sleep(0.3)
        assert time.time() - lease_file.stat().st_mtime < 30
    assert lease_file.read_text() == ""


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 65])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(LeaseError, match="a testbed cannot be called"):
        lease.file_of(name)


def test_waiting_needs_a_testbed(tmp_path: Path) -> None:
    assert "no effect without --testbed" in run(a_plan(tmp_path), tmp_path / "out", "--wait-for-testbed", "3").stderr


# --- schedulers -----------------------------------------------------------------------------------


def test_the_files_of_buildbot_are_programs_with_passwords_of_their_own(tmp_path: Path) -> None:
    done = dutperf("fleet", "init", tmp_path / "fleet", "--testbed", "a", "--testbed", "b's", "--command", "/x/dutperf")
    assert (done.exit_code, "a testbed cannot be called" in done.stderr) == (2, True)
    done = dutperf("fleet", "init", tmp_path / "fleet", "--testbed", "a", "--testbed", "b", "--command", "/x/'dutperf")
    assert done.exit_code == 0, done.stderr
    for name in ("master/master.cfg", "worker-a/buildbot.tac", "worker-b/buildbot.tac"):
        compile((tmp_path / "fleet" / name).read_text(), name, "exec")
        assert (tmp_path / "fleet" / name).stat().st_mode & 0o077 == 0
    passwords = json.loads((tmp_path / "fleet" / "master" / "passwords.json").read_text())
    assert set(passwords) == {"a", "b", "submit"}
    assert len(set(passwords.values())) == 3
    assert passwords["b"] not in (tmp_path / "fleet" / "worker-a" / "buildbot.tac").read_text()
    again = dutperf("fleet", "init", tmp_path / "fleet", "--testbed", "a")
    assert "is not empty" in again.stderr


def test_the_batch_script_of_slurm_starts_a_job_again_until_it_ends(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    command = tmp_path / "dutperf"
    command.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n[ $(wc -l < {calls}) -ge 3 ] || exit 137\nexit 1\n')
    command.chmod(0o755)
    pauses = tmp_path / "pauses"
    sleep = tmp_path / "bin" / "sleep"  # notes how long, instead of a pause of seconds
    sleep.parent.mkdir()
    sleep.write_text(f'#!/bin/sh\necho "$@" >> {pauses}\n')
    sleep.chmod(0o755)
    done = dutperf("fleet", "init", tmp_path / "s", "--scheduler", "slurm", "--testbed", "a", "--command", command)
    assert done.exit_code == 0, done.stderr
    job = ["sh", tmp_path / "s" / "job.sbatch", "p.yaml", "out"]
    path = f"{sleep.parent}:{os.environ['PATH']}"
    ended = subprocess.run(job, env=os.environ | {"PATH": path}, check=False, timeout=60)
    assert ended.returncode == 0, "no result of the DUT is a result"
    lines = calls.read_text().splitlines()
    assert len(lines) == 3
    assert pauses.read_text().split() == [str(SHORT_PAUSE_S)] * 2
    assert all(line.startswith("run p.yaml --out out --or-resume --testbed ") for line in lines)


def test_testbeds_are_those_of_the_passwords(tmp_path: Path) -> None:
    """Directories of workers may have been moved to their hosts. No testbed has the name of those who submit."""
    named = dutperf("fleet", "init", tmp_path / "wrong", "--testbed", "submit")
    assert (named.exit_code, "no testbed can be called submit" in named.stderr) == (2, True)
    assert dutperf("fleet", "init", tmp_path / "fleet", "--testbed", "a", "--testbed", "b").exit_code == 0
    for worker in (tmp_path / "fleet").glob("worker-*"):
        shutil.rmtree(worker)
    program = tmp_path / "buildbot"
    program.write_text("#!/bin/sh\ncat > /dev/null\n")
    program.chmod(0o755)
    asked = ("fleet", "submit", tmp_path / "fleet", "--buildbot", program)
    jobs = [Path(shutil.copy(a_plan(tmp_path), tmp_path / f"{name}.yaml")) for name in ("one", "two")]
    done = dutperf(*asked, *jobs)
    assert done.stdout.splitlines() == ["one: a", "two: b"], done.stderr
    other = dutperf(*asked, jobs[0], "--testbed", "submit")
    assert (other.exit_code, "has no testbed submit: there are a, b" in other.stderr) == (2, True)


def test_jobs_go_to_testbeds_in_turn() -> None:
    jobs = [Path(f"{number}.yaml") for number in range(5)]
    assert [name for _, name in divided(jobs, ["a", "b"])] == ["a", "b", "a", "b", "a"]


def test_what_is_submitted_is_checked_first(tmp_path: Path) -> None:
    dutperf("fleet", "init", tmp_path / "fleet", "--testbed", "a")
    plan = a_plan(tmp_path)
    for arguments, text in (
        ((tmp_path / "nowhere", plan), "is no directory of dutperf fleet init"),
        ((tmp_path / "fleet", plan, "--testbed", "z"), "has no testbed z"),
        ((tmp_path / "fleet", plan, plan), "two jobs have the same name"),
        ((tmp_path / "fleet", tmp_path / "no.yaml"), "cannot read"),
        ((tmp_path / "fleet", plan, "--buildbot", tmp_path / "none"), "cannot be started"),
    ):
        done = dutperf("fleet", "submit", *arguments)
        assert (done.exit_code, text in done.stderr) == (2, True), done.stderr
