# SPDX-License-Identifier: Apache-2.0
"""The journal: each event on the disk at once, whole or not at all, and nobody else's journal
overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dutperf import journal
from dutperf.journal import JOURNAL, JournalError, JournalWriter
from dutperf.model import TrialResult, Verdict, to_json
from plans import counts


def test_events_come_back_in_order(tmp_path: Path) -> None:
    with JournalWriter.create(tmp_path / "new" / "directory") as writer:
        writer.write("plan", format=1)
        writer.write("end", outcome="completed", message=None)
    events = journal.read(tmp_path / "new" / "directory")
    assert [event["event"] for event in events] == ["plan", "end"]
    assert all("time" in event for event in events)
    assert events[1]["message"] is None


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
            writer.write("trial", number=number)
            assert synced[-1].endswith(b"\n")
            assert json.loads(synced[-1].splitlines()[-1])["number"] == number


@pytest.mark.parametrize("torn", [b"{", b'{"event": "result", "rate', b'{"event": "end"}', b"\xff\xfe"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(b'{"event": "plan"}\n' + torn)
    assert journal.read(tmp_path) == [{"event": "plan"}]


@pytest.mark.parametrize("damaged", [b"{\n", b"[1]\n", b'{"no": "event"}\n', b"\n"])
def test_damage_elsewhere_is_named_by_its_line(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(b'{"event": "plan"}\n' + damaged + b'{"event": "end"}\n')
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
        writer.write("plan")
    assert len(journal.read(tmp_path)) == 1


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot write"):
        JournalWriter.create(tmp_path / "file")


def test_no_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read"):
        journal.read(tmp_path)


def test_a_full_disk_is_said() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with JournalWriter(descriptor, Path("/dev/full")) as writer, pytest.raises(JournalError, match="No space left"):
        writer.write("plan")


def test_a_result_comes_back_as_it_was() -> None:
    result = TrialResult(trial=7, verdict=Verdict.VALID, forward=counts(1000, 990, other_received={"icmp6": 3}))
    recorded = json.loads(json.dumps(to_json(result)))
    assert recorded["forward"]["lost"] == 10
    assert journal.recorded_result(recorded) == result
