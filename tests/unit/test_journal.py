# SPDX-License-Identifier: Apache-2.0
"""The journal: each event on the disk at once, whole or not at all, and nobody else's journal
overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from pydantic import ConfigDict, ValidationError

from dutperf import journal
from dutperf.journal import JOURNAL, EndEvent, Finding, JournalError, JournalWriter, held, is_being_written
from dutperf.model import TrialResult, Verdict, to_json
from plans import counts, plan_event

END = b'{"event": "end", "outcome": "completed", "message": null}\n'


def test_events_come_back_in_order(tmp_path: Path) -> None:
    with JournalWriter.create(tmp_path / "new" / "directory") as writer:
        writer.write(plan_event())
        writer.write(EndEvent(outcome="completed", message=None))
    events = journal.read(tmp_path / "new" / "directory")
    assert [event.event for event in events] == ["plan", "end"]
    assert all(event.time for event in events)
    assert events[1] == EndEvent(outcome="completed", message=None, time=events[1].time)


def test_an_event_is_synced_before_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(b"" if path.is_dir() else path.read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    with JournalWriter.create(tmp_path) as writer:
        for number in range(3):
            writer.write(EndEvent(outcome="error", message=str(number)))
            assert synced[-1].endswith(b"\n")
            assert json.loads(synced[-1].splitlines()[-1])["message"] == str(number)


@pytest.mark.parametrize("torn", [b"{", b'{"event": "result", "rate', b'{"event": "end"}', b"\xff\xfe"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(END + torn)
    assert journal.read(tmp_path) == [EndEvent(outcome="completed", message=None)]


@pytest.mark.parametrize(
    "corrupt",
    [
        b"{\n",
        b"[1]\n",
        b'{"no": "event"}\n',
        b"\n",
        b'{"event": "end", "outcome": "nothing", "message": null}\n',
        b'{"event": "wait"}\n',
        b'{"event": "end", "outcome": "completed", "message": null, "more": 1}\n',
    ],
)
def test_corruption_elsewhere_is_named_by_its_line(tmp_path: Path, corrupt: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(END + corrupt + END)
    with pytest.raises(JournalError, match="line 2"):
        journal.read(tmp_path)


def test_another_runs_journal_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text('{"event": "plan"}\n')
    with pytest.raises(JournalError, match="another run"):
        JournalWriter.create(tmp_path)
    assert (tmp_path / JOURNAL).read_text() == '{"event": "plan"}\n'


def test_an_empty_journal_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).touch()
    with JournalWriter.create(tmp_path) as writer:
        writer.write(plan_event())
    assert len(journal.read(tmp_path)) == 1


def test_a_link_in_the_place_of_a_journal_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write in the directory could else have root empty a file."""
    (tmp_path / "secret").write_text("token")
    (tmp_path / JOURNAL).symlink_to(tmp_path / "secret")
    with pytest.raises(JournalError, match="cannot write"):
        JournalWriter.create(tmp_path)
    assert (tmp_path / "secret").read_text() == "token"


def test_a_pipe_in_the_place_of_a_journal_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / JOURNAL)
    with pytest.raises(JournalError, match="cannot write"):
        JournalWriter.create(tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot write"):
        JournalWriter.create(tmp_path / "file")


def test_no_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no run in"):
        journal.read(tmp_path)


def test_a_full_disk_is_said() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with JournalWriter(descriptor, Path("/dev/full")) as writer, pytest.raises(JournalError, match="No space left"):
        writer.write(plan_event())


def test_a_result_comes_back_as_it_was() -> None:
    result = TrialResult(trial=7, verdict=Verdict.VALID, forward=counts(1000, 990, other_received={"icmp6": 3}))
    recorded = json.loads(json.dumps(to_json(result)))
    assert recorded["forward"]["lost"] == 10
    assert TrialResult.model_validate(recorded) == result


@pytest.mark.parametrize("version", [1, 2, 99, None])
def test_a_journal_of_another_format_is_refused_in_a_sentence(tmp_path: Path, version: int | None) -> None:
    old = {"event": "plan", "time": "2026-01-01T00:00:00.000+00:00", "format": version, "unknown": 1}
    (tmp_path / JOURNAL).write_text(json.dumps(old) + "\n" + '{"event": "search", "value": 7}\n')
    with pytest.raises(JournalError, match=f"has format {version}, this version reads format {journal.FORMAT}"):
        journal.read(tmp_path)


class Counted(Finding):
    """A finding that only this file knows."""

    model_config = ConfigDict(extra="forbid")
    event: Literal["counted"] = "counted"
    sessions: int


def test_a_procedures_own_finding_is_read_without_knowing_it_and_then_by_its_form(tmp_path: Path) -> None:
    with JournalWriter.create(tmp_path) as writer:
        writer.write(Counted(case={"frame_size": 84}, repetition=2, sessions=7))
    [event] = journal.read(tmp_path)
    assert isinstance(event, Finding)
    assert (event.case, event.repetition) == ({"frame_size": 84}, 2)
    assert Counted.of(event).sessions == 7
    with pytest.raises(ValidationError):
        Counted.of(event.model_copy(update={"sessions": "many"}))


LOOK = """
import sys
from pathlib import Path
from dutperf.journal import is_being_written
print("looks", flush=True)
while True:
    is_being_written(Path(sys.argv[1]))
"""


def test_whoever_looks_keeps_nobody_from_writing(tmp_path: Path) -> None:
    """As ``dutperf serve`` does, several times a second, by any number of pages."""
    (tmp_path / JOURNAL).touch()
    readers = [subprocess.Popen([sys.executable, "-c", LOOK, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == b"looks\n"
        for _ in range(500):
            with held(tmp_path / JOURNAL):
                assert is_being_written(tmp_path)
        assert not is_being_written(tmp_path)
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
