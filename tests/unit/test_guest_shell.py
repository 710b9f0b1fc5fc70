# SPDX-License-Identifier: Apache-2.0
"""The host's end of a guest's shell against the agent itself, and against what another host left."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dutperf.lab.guest.shell import AGENT, Failed, Shell, Silent
from dutperf.lab.kernel_vm import CONNECTIONS

Connect = Callable[[Callable[[socket.socket], None]], Shell]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """A shell whose guest is this function."""
    threads: list[threading.Thread] = []
    shells: list[Shell] = []

    def to(guest: Callable[[socket.socket], None]) -> Shell:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "shell"))
        listener.listen()

        def talk() -> None:
            with listener, listener.accept()[0] as client:
                guest(client)

        threads.append(threading.Thread(target=talk))
        threads[-1].start()
        shells.append(Shell(tmp_path / "shell"))
        return shells[-1]

    yield to
    for shell in shells:
        shell.close()
    for thread in threads:
        thread.join()


def agent(client: socket.socket) -> None:
    subprocess.run(["sh", "-c", AGENT], stdin=client, stdout=client, check=False)


def test_output_and_status_come_back(connect: Connect) -> None:
    shell = connect(agent)
    shell.await_ready(10)
    assert shell.run("echo one; echo two >&2") == "one\ntwo"
    assert shell.status("printf half; exit 7") == (7, "half")
    with pytest.raises(Failed, match="ended with status 3: why"):
        shell.run("echo why; exit 3")


def test_a_late_answer_to_another_script_is_not_taken(connect: Connect) -> None:
    """The host that asked has gone; or it is the agent that says that it is ready."""

    def late(client: socket.socket) -> None:
        client.sendall(b"\x01ready 0\nold\n\x010123456789abcdef 0\n")
        agent(client)

    shell = connect(late)
    assert shell.status("echo new; exit 2", 10) == (2, "new")


def test_what_a_silent_guest_said_is_told(connect: Connect) -> None:
    def silent(client: socket.socket) -> None:
        client.sendall(b"no agent\n")
        while client.recv(1024):
            pass

    shell = connect(silent)
    with pytest.raises(Silent, match=r"did not answer within 0\.1 s; it said 'no agent"):
        shell.run("true", 0.1)


def test_a_guest_that_has_ended_is_not_a_slow_one(connect: Connect) -> None:
    shell = connect(lambda client: client.sendall(b"panic"))
    with pytest.raises(Silent, match=r"the guest has ended; it said 'panic'"):
        shell.run("true", 60)


@pytest.mark.parametrize(
    ("conntrack", "left", "words"),
    [("false", 0, None), ("echo refused; false", 5, "refused"), ("true", 5, "connections are left"), ("true", 0, "")],
)
def test_connections_of_a_guest_that_stay_are_an_error(
    conntrack: str, left: int, words: str | None, tmp_path: Path
) -> None:
    """It does not wait for them for ever, as nothing else could be asked."""
    (tmp_path / "count").write_text(f"{left}\n")
    script = CONNECTIONS["clear_connections"].replace(
        "/proc/sys/net/netfilter/nf_conntrack_count", str(tmp_path / "count")
    )
    mocked = f"conntrack() {{ {conntrack}; }}\nusleep() {{ :; }}\n{script}".replace("/tmp/", f"{tmp_path}/")
    done = subprocess.run(["sh", "-ec", mocked], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode == 0) == (words == "")
    assert (words or "") in done.stdout
