# SPDX-License-Identifier: Apache-2.0
"""Files of results: made once, locked while they are written, whole after a crash."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dutperf.errors import DutperfError

JOURNAL = "journal.jsonl"


class JournalError(DutperfError):
    """A journal cannot be written or read; the message names the file."""


class WriteError(JournalError):
    """What was measured cannot be kept: the disk is full, or fails. Everything written before is
    whole, and the run can be resumed from there."""


def is_being_written(directory: Path) -> bool:
    """Whether a process writes the journal in ``directory``; where there is none, no."""
    try:
        descriptor = os.open(directory / JOURNAL, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def claim(directory: Path, files: Sequence[str], holds: str, or_else: str = "") -> None:
    """Make ``directory``, where it is missing, for results of which the first of ``files`` is
    written first.

    Raises:
        JournalError: it has one of ``files`` already, and so what ``holds`` says (``or_else``: what
            else can be done about it); or it cannot be made.
    """
    for name in files:
        if (directory / name).exists():
            raise JournalError(f"{directory} holds {holds} ({name}): choose another directory or remove it{or_else}")
    make_directory(directory / files[0])


@contextmanager
def held(path: Path) -> Iterator[None]:
    """No second process holds the file meanwhile: it says what a run, or a suite of them, is for.

    Raises:
        JournalError: it cannot be opened, or another process holds it.
    """
    descriptor = open_alone(path)
    try:
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that is derived from journals, or says what they are for; a reader never sees
    half of it, and a crash leaves the old one or the new.

    Raises:
        WriteError: it cannot be written.
    """
    fresh = path.with_suffix(".tmp")
    try:
        with fresh.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def make_directory(path: Path) -> None:
    """That of a file that is to be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def open_alone(path: Path, flags: int = 0) -> int:
    """``path`` for appending. The lock is the process's: the kernel frees it however the process
    ends.

    Raises:
        JournalError: it cannot be opened, or another process writes to it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o644)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise JournalError(f"{path} is being written: its run goes on in another process") from error
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def sync_directory(directory: Path) -> None:
    """A file is found again after a crash only if its directory is on the disk as well."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
