# SPDX-License-Identifier: Apache-2.0
"""What docs/security.md says: names in shared directories, secrets, files that travel, limits. The rules of
the page are in test_web.py."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import SEARCH, dutperf, throughput, write
from dutperf import fleet
from dutperf.fleet import Fleet, FleetError, buildbot_files, keep_plan
from dutperf.invocation import command_line
from dutperf.journal import JournalError
from dutperf.run import lease
from dutperf.run.lease import LeaseError, leased
from dutperf.run.testbench import Source
from dutperf.setup import yaml_text
from dutperf.setup.yaml_text import YamlError
from dutperf.web import app, forms
from dutperf.web.access import Rules
from dutperf.web.errors import Refused
from dutperf.web.forms import Places
from dutperf.web.runs import Runs, run_in
from dutperf.web.stored import Stored

# --- predictable names in shared directories ------------------------------------------------------


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "testbeds"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(lease, "OF_THIS_HOST", folder)
    monkeypatch.setattr(os, "access", lambda *_: True)
    return folder


def test_a_lease_does_not_follow_links(leases: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (leases / "rack").symlink_to(target)
    with pytest.raises(LeaseError, match="cannot be taken"), leased("rack"):
        pass
    assert target.read_text() == "precious"


def test_a_lease_in_a_directory_that_all_can_write_is_refused(leases: Path) -> None:
    leases.chmod(0o1777)
    with pytest.raises(LeaseError, match="others may write its directory"), leased("rack"):
        pass


@pytest.mark.parametrize(("directory", "file"), [(0o755, 0o600), (0o2775, 0o660)])
def test_only_who_may_write_the_directory_can_hold_a_lease(directory: int, file: int, leases: Path) -> None:
    """A lock needs no more than a file that can be opened."""
    leases.chmod(directory)
    with leased("rack"):
        assert stat.S_IMODE((leases / "rack").stat().st_mode) == file


def test_a_lease_that_may_not_be_looked_at_is_not_free(leases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (leases / "rack").touch()

    def forbidden(*_: Any, **__: Any) -> Any:
        raise PermissionError

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(LeaseError, match="may not look at"):
        lease.owner("rack")


def test_root_has_the_leases_of_the_host_where_only_root_writes() -> None:
    assert Path("/run/dutperf") in lease.OF_THIS_HOST.parents


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--webhook", "https://ci.example/T0/secret?key=secret"], ["--webhook", "https://ci.example/..."]),
        (["--webhook=https://me:secret@ci.example/x"], ["--webhook=https://ci.example/..."]),
        (["--webhook", "https://secret@ci.example"], ["--webhook", "https://ci.example/..."]),
        (["otg", "--token", "secret", "--plain"], ["otg", "--token", "...", "--plain"]),
        (["--token=secret"], ["--token=..."]),
        (["--out", "//server/share"], ["--out", "//server/share"]),
        (["--out", "\udcff"], ["--out", "\\udcff"]),
    ],
)
def test_a_command_line_is_kept_without_secrets(words: list[str], kept: list[str]) -> None:
    assert command_line(words) == kept


def test_no_file_has_the_url_of_a_webhook(tmp_path: Path) -> None:
    config, out = write(tmp_path, "Engine"), tmp_path / "out"
    argv = [sys.executable, "-m", "dutperf", "throughput", "--config", config, *SEARCH, "--out", out]
    argv += ["--webhook", "http://127.0.0.1:9/secret-word"]
    assert subprocess.run(argv, check=False, capture_output=True, timeout=60).returncode == 0
    assert all(b"secret-word" not in path.read_bytes() for path in out.rglob("*") if path.is_file())


SENDS = """#!{python}
import json, sys
sys.stdout.write("")
open({log!r}, "a").write(json.dumps([sys.argv[1:], sys.stdin.read()]) + "\\n")
"""


def test_a_password_is_no_word_of_a_command_line(tmp_path: Path) -> None:
    made = tmp_path / "fleet"
    assert dutperf("fleet", "init", made, "--testbed", "a").exit_code == 0
    password = json.loads((made / "master" / "passwords.json").read_text())["submit"]
    program, job = tmp_path / "buildbot", tmp_path / "job-64.yaml"
    program.write_text(SENDS.format(python=sys.executable, log=str(tmp_path / "log")))
    program.chmod(0o755)
    job.write_text("lab: kernel-ipv4\nprocedures: {throughput: {}}\n")
    assert dutperf("fleet", "submit", made, job, "--buildbot", program).exit_code == 0
    [[argv, given]] = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert given == f"{password}\n"
    assert all(password not in word for word in argv)
    assert str(tmp_path) not in " ".join(argv), "the plan stays with the master"
    assert (made / "master" / "jobs" / "job-64.yaml").read_bytes() == job.read_bytes()


# --- what comes over a network --------------------------------------------------------------------


def master_of(host: str) -> str:
    return buildbot_files(Fleet(("a",), host, "dutperf"), fleet.fresh_passwords(["a"]))["master/master.cfg"]


def test_the_master_listens_on_its_own_address_alone() -> None:
    assert "\"port\": 'tcp:9989:interface=127.0.0.1'" in master_of("127.0.0.1")
    assert "\"port\": 'tcp:9989:interface=\\\\:\\\\:1'" in master_of("::1")
    with pytest.raises(FleetError, match="has no address"):
        master_of("no-such-host.invalid")


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "", ".", "-x", "a/b", "a\n", None, ["a"]])
def test_the_name_of_a_job_is_no_path(name: Any) -> None:
    text = master_of("127.0.0.1")
    members: dict[str, Any] = {"re": re, "util": type("util", (), {"renderer": staticmethod(lambda one: one)})}
    exec(text[text.index("def of_job") : text.index("def measure")], members)
    path = members["of_job"]("results/{}")

    def properties(value: Any) -> Any:
        return type("Properties", (), {"getProperty": lambda _self, _name: value})()

    assert path(properties("plan-64.5_x")) == "results/plan-64.5_x"
    with pytest.raises(ValueError, match="cannot be called"):
        path(properties(name))


def test_a_job_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "master").mkdir()
    job = tmp_path / "a b.yaml"
    with pytest.raises(FleetError, match="cannot be called 'a b'"):
        keep_plan(tmp_path, job)
    job = tmp_path / "a.yaml"
    for text in ("one", "one"):
        job.write_text(text)
        keep_plan(tmp_path, job)
    job.write_text("other")
    with pytest.raises(FleetError, match="has another job a"):
        keep_plan(tmp_path, job)


# --- files that travel ----------------------------------------------------------------------------

FOREIGN = ("vdev:net_pcap0,tx_pcap=/tmp/anything", "vdev:net_pcap1,tx_pcap=/tmp/other")


def cut_off(out: Path, ports: Sequence[str] = ()) -> None:
    """After a few trials, maybe with other ports in its first line."""
    first, *rest = (out / "journal.jsonl").read_text().splitlines(keepends=True)
    plan = json.loads(first)
    for side, port in zip(("left", "right"), ports, strict=False):
        plan["config"][side]["port"] = port
    (out / "journal.jsonl").write_text(json.dumps(plan) + "\n" + "".join(rest[:7]))


def test_the_ports_of_a_journal_are_not_believed(tmp_path: Path) -> None:
    config, out = write(tmp_path, "Engine"), tmp_path / "out"
    assert throughput(config, out).exit_code == 0
    cut_off(out, FOREIGN)
    for words in ((), ("--config", config)):
        done = dutperf("resume", out, *words)
        assert (done.exit_code, "has other ports than the run had" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("ports", [FOREIGN, ("af_packet:eth0", "eth1"), ("0000:01:00.0", "0000:01:00.1")])
def test_a_journal_without_its_configuration_opens_nothing(ports: tuple[str, str], tmp_path: Path) -> None:
    mapping = yaml.safe_load(write(tmp_path, "Engine").read_text())
    del mapping["engine"]
    mapping["left"]["port"], mapping["right"]["port"] = ports
    with pytest.raises(JournalError, match="nor are their ports believed"):
        Source.of_plan({"config": str(tmp_path / "gone.yaml")}, mapping)


@pytest.mark.parametrize(("driver", "is_believed"), [("af_packet", True), ("af_xdp", False)])
def test_a_run_with_stamps_of_the_kernel_had_the_same_ports(driver: str, is_believed: bool, tmp_path: Path) -> None:
    config = write(tmp_path, "Engine")
    mapping = yaml.safe_load(config.read_text())
    mapping["left"]["port"], mapping["right"]["port"] = "eth1", "eth2"
    config.write_text(yaml.safe_dump(mapping))
    mapping["left"]["port"], mapping["right"]["port"] = f"{driver}:eth1", f"{driver}:eth2"
    refused = pytest.raises(JournalError, match="has other ports than the run had")
    with nullcontext() if is_believed else refused:
        Source.of_plan({"config": str(config)}, mapping)


def test_a_run_is_resumed_with_its_own_configuration_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = write(tmp_path, "Engine"), tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    assert throughput(Path(config.name), out).exit_code == 0
    cut_off(out)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert dutperf("resume", out).exit_code == 0


def test_a_configuration_that_others_may_have_written_is_used_only_where_it_is_named(tmp_path: Path) -> None:
    config, out = write(tmp_path, "Engine"), tmp_path / "out"
    assert throughput(config, out).exit_code == 0
    cut_off(out)
    config.chmod(0o666)
    done = dutperf("resume", out)
    assert (done.exit_code, "which another user may have written" in done.stderr) == (2, True)
    assert dutperf("resume", out, "--config", config).exit_code == 0


def test_a_plan_names_its_configuration(tmp_path: Path) -> None:
    config, plan, out = write(tmp_path, "Engine"), tmp_path / "plan.yaml", tmp_path / "out"
    options = {"rates": [1000], "duration": 0.01, "drain": 0, "repetitions": 4, "frame-size": 84}
    plan.write_text(yaml.safe_dump({"config": config.name, "procedures": {"frame-loss": options}}))
    config.chmod(0o666)
    job = ("run", plan, "--out", out, "--or-resume")
    assert dutperf(*job).exit_code == 0
    cut_off(out)
    done = dutperf(*job)
    assert done.exit_code == 0, done.stderr
    assert "resumed" in (out / "journal.jsonl").read_text()


@pytest.fixture
def served(tmp_path: Path) -> app.Server:
    (tmp_path / "setups").mkdir()
    root = (tmp_path / "results").resolve()
    root.mkdir()
    store = Stored(tmp_path / "store.sqlite")
    return app.Server(Runs((root,)), Places(tmp_path / "setups", (root,)), store, Rules("t" * 16, "127.0.0.1"))


def resumed(served: app.Server, directory: Path) -> None:
    served.runs.resume(run_in(directory), lambda text: forms.plan_from(text, served.places), served.places.within)


def test_the_page_resumes_nothing_that_it_could_not_start(served: app.Server, tmp_path: Path) -> None:
    outside, run = write(tmp_path, "Engine"), served.runs.roots[0] / "run"
    assert throughput(outside, run).exit_code == 0
    cut_off(run)
    with pytest.raises(Refused, match="outside the directories that are served"):
        resumed(served, run)
    (run / "plan.yaml").write_text(yaml.safe_dump({"config": str(outside), "procedures": {"throughput": None}}))
    (run / "journal.jsonl").unlink()
    with pytest.raises(Refused, match="outside the directories that are served"):
        resumed(served, run)


# --- limits ---------------------------------------------------------------------------------------


def bomb(levels: int = 12) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_a_few_lines_of_yaml_do_not_take_all_memory(served: app.Server, tmp_path: Path) -> None:
    assert len(bomb()) < 1000
    with pytest.raises(YamlError, match="aliases resolved"):
        yaml_text.read(bomb())
    with pytest.raises(Refused, match="aliases resolved"):
        forms.plan_from(bomb(), served.places)
    (tmp_path / "plan.yaml").write_text(bomb())
    done = dutperf("plan", "check", tmp_path / "plan.yaml")
    assert (done.exit_code, "aliases resolved" in done.stderr) == (2, True)
    with pytest.raises(YamlError, match="characters"):
        yaml_text.read("#" * 1_000_001)
    with pytest.raises(YamlError, match="not valid YAML"):
        yaml_text.read("a: " + "9" * 5000)
    assert yaml_text.read("a: &x [1, 2]\nb: *x")[0] == {"a": [1, 2], "b": [1, 2]}


def test_who_only_looks_does_not_keep_the_operator_out(served: app.Server) -> None:
    run = served.runs.roots[0] / "run"
    run.mkdir()
    (run / "journal.jsonl").write_text("")

    async def follow(may_control: bool) -> Any:
        state = type("State", (), {"may_control": may_control})
        request = type("Request", (), {"path_params": {"run": run_in(run).id}, "state": state})()
        answer = await served.follow(request)
        await anext(answer.body_iterator)
        return answer

    async def crowd() -> None:
        kept = [await follow(False) for _ in range(app.MOST_READERS)]
        with pytest.raises(Refused, match="readers follow runs already"):
            await follow(False)
        kept.append(await follow(True))
        for one in kept:
            await one.body_iterator.aclose()

    asyncio.run(crowd())
    assert served.readers == {True: 0, False: 0}
