# SPDX-License-Identifier: Apache-2.0
"""Result files: never overwritten by another run, locked during writing, complete after a crash."""

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


class BeingWritten(JournalError):
    """Another process writes it."""

    is_temporary = True


class WriteError(JournalError):
    """Results cannot be written: the disk is full or fails. Everything written before is complete, and
    the run can be resumed from there."""


def journals_of(directory: Path) -> list[Path]:
    """The journals of the run or the suite in ``directory``."""
    return [path for path in (directory / JOURNAL, *sorted(directory.glob(f"*/{JOURNAL}"))) if path.is_file()]


def is_being_written(directory: Path) -> bool:
    """Whether a process is writing the journal in ``directory``; false without a journal."""
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
    """Check that ``directory`` has none of ``files`` yet, and create it if it is missing.

    Raises:
        JournalError: ``directory`` has one of ``files``, or it cannot be created. ``holds`` names
            the results in it, ``or_else`` a further remedy for the message.
    """
    for name in files:
        if (directory / name).exists():
            raise JournalError(f"{directory} holds {holds} ({name}): choose another directory or remove it{or_else}")
    make_directory(directory / files[0])


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock the file of a run or a suite within this context.

    Raises:
        JournalError: the file cannot be opened, or another process holds it.
    """
    descriptor = open_alone(path)
    try:
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a summary or a suite file atomically: readers and crashes see the old content or the new.

    Raises:
        WriteError: the file cannot be written.
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
    """Create the directory of the file ``path``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def open_alone(path: Path, flags: int = 0) -> int:
    """Open ``path`` for appending, and lock it. The kernel releases the lock however the process ends.

    Raises:
        JournalError: the file cannot be opened, or another process writes to it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o644)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise BeingWritten(f"{path} is being written: its run goes on in another process") from error
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def sync_directory(directory: Path) -> None:
    """Write the directory to the disk: only then does a new file survive a crash."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
