# SPDX-License-Identifier: Apache-2.0
"""Jobs on existing schedulers: what Buildbot and Slurm need to run them on several testbeds.

A job is a plan of its own. It belongs to one testbed, where its results grow: a testbed that was lost goes on with it
when it is back, so nothing is measured twice. Starting it again is always right (``dutperf run --or-resume``), so
whatever a scheduler does with a job that was cut off, it is finished once.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import DutperfError
from dutperf.exit_status import DONE, GIVEN_UP, INTERRUPTED, NOT_NOW
from dutperf.journal import write_whole
from dutperf.report.templating import environment
from dutperf.run.lease import refusal_of_name

HERE = Path(__file__).parent
MASTER_PORT, CHANGES_PORT, PAGE_PORT = 9989, 9990, 8010
JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of directories on testbeds and master."""
SUBMIT = "submit"
"""Name of those who submit jobs, beside the testbeds."""
RETRIES = 20
"""Starts of a job in all."""
PAUSE_S, SHORT_PAUSE_S = 60, 5
"""Before a job is started again: one whose testbed was not to be had, and any other."""
DECISIONS = {
    "done": DONE,
    "given_up": GIVEN_UP,
    "not_now": NOT_NOW,
    "interrupted": INTERRUPTED,
    "retries": RETRIES,
    "pause_s": PAUSE_S,
    "short_pause_s": SHORT_PAUSE_S,
}
"""What both schedulers do at an exit status."""


class FleetError(DutperfError):
    """The files cannot be made."""


@dataclass(frozen=True)
class Fleet:
    """Testbeds of one master."""

    testbeds: tuple[str, ...]
    host: str
    """Where the workers find the master."""
    command: str
    """The command line on the testbeds."""

    @property
    def listens_on(self) -> str:
        """The master's address for its workers: its own alone, not every one of its host. Raises FleetError: it has
        none."""
        try:
            return str(socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError as error:
            raise FleetError(f"{self.host} has no address: {error.strerror}") from None

    def __post_init__(self) -> None:
        for refusal in filter(None, map(refusal_of_name, self.testbeds)):
            raise FleetError(refusal)
        if len(set(self.testbeds)) < len(self.testbeds) or not self.testbeds:
            raise FleetError("name each testbed once")
        if SUBMIT in self.testbeds:
            raise FleetError(f"no testbed can be called {SUBMIT}: those who submit jobs have that name")


def buildbot_files(fleet: Fleet, passwords: Mapping[str, str]) -> dict[str, str]:
    """The files of the master, and of each worker, by their paths."""
    members = {
        "testbeds": fleet.testbeds,
        "passwords": passwords,
        "host": fleet.host,
        "command": fleet.command,
        "own": [sys.executable, "-m", "dutperf"],
        "master_port": MASTER_PORT,
        "changes_port": CHANGES_PORT,
        "page_port": PAGE_PORT,
        "listens_on": fleet.listens_on.replace(":", "\\:"),
        "job_name": JOB_NAME.pattern,
        **DECISIONS,
    }
    files = {"master/master.cfg": _rendered("master.cfg.j2", members)}
    files["master/passwords.json"] = json.dumps(passwords, indent=1) + "\n"
    for name in fleet.testbeds:
        files[f"worker-{name}/buildbot.tac"] = _rendered("worker.tac.j2", {**members, "name": name})
        files[f"worker-{name}/info/host"] = f"testbed {name}\n"
    return files


def slurm_file(fleet: Fleet) -> str:
    return _rendered("job.sbatch.j2", {"command": fleet.command, **DECISIONS})


def fresh_passwords(names: Iterable[str]) -> dict[str, str]:
    """One for each worker, and one for those who submit."""
    return {name: secrets.token_urlsafe(18) for name in (*names, SUBMIT)}


def keep_plan(directory: Path, job: Path) -> None:
    """Keep the plan of a job with the master, for the time when a testbed takes it. Raises FleetError: the job's name
    cannot be that of a directory, another job has it, or the plan cannot be written."""
    if not JOB_NAME.fullmatch(job.stem):
        raise FleetError(f"a job cannot be called '{job.stem}': use letters, digits, '.', '_' and '-'")
    kept = directory / "master" / "jobs" / f"{job.stem}.yaml"
    try:
        kept.parent.mkdir(exist_ok=True)
        if kept.exists() and kept.read_bytes() != job.read_bytes():
            raise FleetError(f"{directory} has another job {job.stem}: give this one another name")
        write_whole(kept, job.read_bytes())
    except OSError as error:
        raise FleetError(f"cannot keep {job}: {error.strerror}") from None


def divided(jobs: Sequence[Path], testbeds: Sequence[str]) -> list[tuple[Path, str]]:
    """Each job with its testbed, in turn."""
    return [(job, testbeds[number % len(testbeds)]) for number, job in enumerate(jobs)]


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new directory; those with passwords for their owner alone. Raises FleetError: there is
    something already, or they cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise FleetError(f"{directory} is not empty")
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FleetError(f"cannot write into {directory}: {error.strerror}") from None


def _rendered(template: str, members: Mapping[str, object]) -> str:
    rendering = environment(HERE / "templates", escape=False)
    rendering.filters["literal"] = repr
    return rendering.get_template(template).render(members)
