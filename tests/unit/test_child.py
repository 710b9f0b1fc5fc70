# SPDX-License-Identifier: Apache-2.0
"""Child processes end with the process that started them, not with the thread."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dutperf.lab.netns import Namespace
from dutperf.lab.site import Site
from dutperf.machine import child

SLEEP = ("sleep", "60")
STARTS = """
import signal, sys, time
from dutperf.machine import child
print(child.start(["sleep", "60"], signal.SIGKILL).pid, flush=True)
time.sleep(60)
"""


def in_a_thread(start: object) -> subprocess.Popen[bytes]:
    """Start it in a thread that ends."""
    started: list[subprocess.Popen[bytes]] = []
    starter = threading.Thread(target=lambda: started.append(start()))  # type: ignore[operator]
    starter.start()
    starter.join()
    time.sleep(0.2)  # the kernel sends the signal as the thread ends
    return started[0]


def test_a_child_outlives_the_thread_that_asked_for_it() -> None:
    process = in_a_thread(lambda: child.start(SLEEP, signal.SIGKILL))
    assert process.poll() is None
    process.kill()
    assert process.wait(10) == -signal.SIGKILL


def test_a_daemon_of_a_lab_outlives_the_thread_that_started_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Namespace, "command", lambda _, argv: list(argv))
    site = Site.draft("none")
    daemon = in_a_thread(lambda: site.start_daemon(SLEEP, tmp_path / "log"))
    assert daemon.poll() is None
    daemon.kill()
    daemon.wait(10)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_the_process(number: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.send_signal(number)
    owner.wait(10)
    owner.stdout.close()
    deadline_s = time.monotonic() + 10
    while (state := state_of(pid)) not in ("", "Z") and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert state in ("", "Z")


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_what_cannot_be_started_is_an_error_of_the_caller() -> None:
    with pytest.raises(FileNotFoundError):
        child.start(["/nowhere"], signal.SIGKILL)


def test_its_end_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen.wait sleeps between two looks."""
    process = child.start(["sh", "-c", "read line || exit 3"], signal.SIGKILL, stdin=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(process, 0.01)
    assert process.stdin is not None
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    process.stdin.close()
    assert child.wait(process, 60) == 3
    assert child.wait(process, 0) == 3


def test_an_older_kernel_is_asked_every_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", unknown)
    assert child.wait(child.start(["true"], signal.SIGKILL), 60) == 0
