# SPDX-License-Identifier: Apache-2.0
"""Leases of testbeds: one campaign at a time measures on a testbed.

A lease is a lock on a file of the tester's host, which the kernel gives back when its owner ends, however it ends. The
file tells who the owner is, and its time is the owner's heartbeat. It lies in a directory that nobody else can write:
in one that all can write, anybody could hold any lease, or have root follow a link.
"""

from __future__ import annotations

import errno
import getpass
import json
import os
import re
import shlex
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from dutperf import file_lock
from dutperf.errors import DutperfError
from dutperf.invocation import command_line

OF_THIS_HOST = Path("/run/dutperf/testbeds")
HEARTBEAT_S = 5.0
_LOOK_S = 0.5
LONGEST_NAME = 49
"""Letters; Buildbot's names have 50 at most."""
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")


class LeaseError(DutperfError):
    """The testbed cannot be leased."""


class LeaseTaken(LeaseError):
    """Another process has it."""

    is_temporary = True


def refusal_of_name(testbed: str) -> str | None:
    """Why a testbed cannot have this name; None: it can."""
    if _NAME.fullmatch(testbed):
        return None
    return f"a testbed cannot be called '{testbed}': use up to {LONGEST_NAME} letters, digits, '.', '_' and '-'"


def folder() -> Path:
    """The directory of the leases: root's, where this user may write it (an administrator can give it to a group), else
    the user's own. Raises LeaseError: this user has none."""
    if os.geteuid() == 0 or os.access(OF_THIS_HOST, os.W_OK):
        return OF_THIS_HOST
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own is None:
        raise LeaseError(
            f"this user may not write {OF_THIS_HOST}, and has no XDG_RUNTIME_DIR: no testbed can be leased"
        )
    return Path(own, "dutperf", "testbeds")


def file_of(testbed: str) -> Path:
    """The file of a testbed's lease. Raises LeaseError: a testbed cannot have this name."""
    if (refusal := refusal_of_name(testbed)) is not None:
        raise LeaseError(refusal)
    return folder() / testbed


@contextmanager
def leased(testbed: str, wait_s: float = 0.0, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Within, no other process leases this testbed. Waits for it so long; ``waiting`` is told who has it. Raises
    LeaseError: another one has it, who is named; or the file cannot be written."""
    path = file_of(testbed)
    try:
        file = _opened(path)
    except OSError as error:
        raise LeaseError(f"the lease of testbed {testbed} cannot be taken: {path}: {error.strerror}") from None
    with file:
        _wait(file, testbed, wait_s, waiting)
        ended = threading.Event()
        _write(file)
        heart = threading.Thread(target=_beat, args=(file, ended), name="dutperf-lease", daemon=True)
        heart.start()
        try:
            yield
        finally:
            ended.set()
            heart.join()
            file.truncate(0)


def _opened(path: Path) -> TextIO:
    """The file, for those alone who may write its directory: who can open a file can also hold its lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = path.parent.stat()
    if about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
        raise PermissionError(errno.EPERM, "others may write its directory")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o660 if about.st_mode & stat.S_IWGRP else 0o600)
    return os.fdopen(descriptor, "a+", encoding="utf-8")


def owner(testbed: str) -> dict[str, Any] | None:
    """Who has the testbed, as JSON types: ``user``, ``pid``, ``command``, ``since`` and ``heartbeat_s``, its age; None:
    nobody has. Raises LeaseError: this user may not know."""
    path = file_of(testbed)
    try:
        with path.open("r", encoding="utf-8") as file:
            return _owner(file) if file_lock.is_taken(file.fileno()) else None
    except PermissionError:
        raise LeaseError(f"this user may not look at the lease of testbed {testbed} ({path})") from None
    except OSError:
        return None


def all_leases() -> dict[str, dict[str, Any] | None]:
    """The testbeds that were ever leased on this host since it booted, with their owners."""
    return {path.name: owner(path.name) for path in sorted(folder().glob("*")) if refusal_of_name(path.name) is None}


def _wait(file: TextIO, testbed: str, wait_s: float, waiting: Callable[[str], None] | None) -> None:
    until_s = time.monotonic() + wait_s
    told = False
    while True:
        if file_lock.take(file.fileno()):
            return
        sentence = f"testbed {testbed} is in use by {_text(_owner(file))}"
        if time.monotonic() >= until_s:
            raise LeaseTaken(sentence + (f"; waited {wait_s:g} s" if wait_s else ""))
        if waiting is not None and not told:
            told = True
            waiting(f"{sentence}: waiting for it, {wait_s:g} s at most")
        time.sleep(min(_LOOK_S, max(0.0, until_s - time.monotonic())))


def _write(file: TextIO) -> None:
    members = {
        "user": _user(),
        "pid": os.getpid(),
        "command": shlex.join(command_line(sys.argv)),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    file.seek(0)
    file.truncate(0)
    file.write(json.dumps(members))
    file.flush()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return str(os.getuid())


def _owner(file: TextIO) -> dict[str, Any]:
    file.seek(0)
    try:
        members = json.loads(file.read(10_000))
        age_s = max(0.0, time.time() - os.fstat(file.fileno()).st_mtime)
        return {**{name: members[name] for name in ("user", "pid", "command", "since")}, "heartbeat_s": round(age_s, 1)}
    except (ValueError, KeyError, TypeError):  # it is about to write this
        return {}


def _text(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return (
        f"{owner['user']}, process {owner['pid']}, since {owner['since']}: {owner['command']} (last heartbeat"
        f" {owner['heartbeat_s']:.0f} s ago)"
    )


def _beat(file: TextIO, ended: threading.Event) -> None:
    while not ended.wait(HEARTBEAT_S):
        with suppress(OSError):
            os.utime(file.fileno())
