# SPDX-License-Identifier: Apache-2.0
"""Result files: never overwritten by another run, locked during writing, complete after a crash."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dutperf import file_lock
from dutperf.errors import DutperfError
from dutperf.exit_status import DISK

JOURNAL = "journal.jsonl"
TRIAL_FILE = "trial.json"
"""The result of ``dutperf trial``, which has no journal."""
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})


class JournalError(DutperfError):
    """A journal cannot be written or read; the message names the file."""


class BeingWritten(JournalError):
    """Another process writes it."""

    is_temporary = True


class WriteError(JournalError):
    """Results cannot be written: the disk is full or fails. Everything written before is complete, and
    the run can be resumed from there."""


def not_written(path: Path, error: OSError) -> JournalError:
    """That a file or directory cannot be made: a WriteError where the disk is full or fails."""
    kind = WriteError if error.errno in DISK else JournalError
    return kind(f"cannot write {path}: {error.strerror}")


def journals_of(directory: Path) -> list[Path]:
    return [path for path in (directory / JOURNAL, *sorted(directory.glob(f"*/{JOURNAL}"))) if path.is_file()]


def is_being_written(directory: Path) -> bool:
    """Whether a process is writing the journal in ``directory``; false without a journal."""
    try:
        descriptor = os.open(directory / JOURNAL, os.O_RDONLY)
    except OSError:
        return False
    try:
        return file_lock.is_taken(descriptor)
    finally:
        os.close(descriptor)


def check_free(directory: Path, files: Sequence[str], holds: str, or_else: str = "") -> None:
    """Check that ``directory`` has none of ``files`` yet. Raises JournalError: it has one. ``holds`` names the results
    in it, ``or_else`` a further remedy for the message."""
    for name in files:
        if (directory / name).exists():
            raise JournalError(f"{directory} holds {holds} ({name}): choose another directory or remove it{or_else}")


def claim(directory: Path, files: Sequence[str], holds: str, or_else: str = "") -> None:
    """As :func:`check_free`, and create ``directory`` if it is missing. Raises JournalError: see there; or it cannot be
    created."""
    check_free(directory, files, holds, or_else)
    make_directory(directory / files[0])


@contextmanager
def held(path: Path, *, create: bool = False) -> Iterator[None]:
    """Lock the file of a run or a suite within this context. ``create``: an empty one where there is none. Raises
    JournalError: the file cannot be opened, or another process holds it."""
    descriptor = open_alone(path, os.O_CREAT if create else 0)
    try:
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: str | bytes, *, synced: bool = True) -> None:
    """Write a file atomically: readers and crashes see the old content or the new. ``synced``: a crash of the machine
    sees either as well. Raises WriteError: the file cannot be written."""
    with _beside(path, content, synced=synced) as (fresh, _), _failing(path):
        fresh.replace(path)
        if synced:
            sync_directory(path.parent)


def write_new(path: Path, content: str | bytes) -> None:
    """Write a file that does not exist yet, atomically. Raises JournalError: there is one. Raises WriteError: it cannot
    be written."""
    with new_and_held(path, content):
        pass


@contextmanager
def new_and_held(path: Path, content: str | bytes) -> Iterator[None]:
    """Write a file that does not exist yet, atomically, and hold its lock within: from before others see it. Raises
    JournalError: there is one, maybe by another process that began meanwhile. Raises WriteError: it cannot be
    written."""
    with _beside(path, content) as (fresh, descriptor):
        file_lock.take(descriptor)  # nobody else knows its name yet
        with _failing(path):
            try:
                os.link(fresh, path)
            except FileExistsError:
                raise JournalError(f"there is already {path}: choose another place, or remove it") from None
            except OSError as error:
                if error.errno not in _NO_LINKS or path.exists():
                    raise
                fresh.replace(path)  # a file system without links
            fresh.unlink(missing_ok=True)
            sync_directory(path.parent)
        yield


@contextmanager
def _beside(path: Path, content: str | bytes, *, synced: bool = True) -> Iterator[tuple[Path, int]]:
    """A file of its own name in the same directory, with this content: no other's is touched. It is gone afterwards,
    unless it was moved."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with _failing(path):
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with _failing(path):
            write_all(descriptor, content.encode() if isinstance(content, str) else content)
            if synced:
                os.fsync(descriptor)
        yield fresh, descriptor
    finally:
        os.close(descriptor)
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    """Errors of the system within are a WriteError of ``path`` where the disk is full or fails, else a JournalError."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from error


def make_directory(path: Path) -> None:
    """Create the directory of the file ``path``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(path, error) from error


def open_alone(path: Path, flags: int = 0) -> int:
    """Open ``path`` for appending, and lock it. The kernel releases the lock however the process ends. Raises
    JournalError: the file cannot be opened, is a link (another user's, to a file that only root may write), or another
    process writes to it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o644)
    except OSError as error:
        raise not_written(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise JournalError(f"cannot write {path}: not a regular file")
    if not file_lock.take(descriptor):
        os.close(descriptor)
        raise BeingWritten(f"{path} is being written: its run goes on in another process")
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
