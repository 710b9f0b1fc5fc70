# SPDX-License-Identifier: Apache-2.0
"""Ports that a socket joins to another process, which none of the project's code made: testpmd's
own ends of vhost-user and memif.

A busy machine starves either side. What is right holds all the same: each frame was received, or
found the DUT's queue full, or the trial is invalid.
"""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dutperf.engine.client import EngineTester
from dutperf.model import TrialResult, Verdict
from dutperf.tester import TesterError
from switches import await_true, cores, running_testpmd

from .conftest import OpenEngine
from .streams import stream, trial
from .test_ring import reversed_stream

pytestmark = pytest.mark.alone  # a switch that polls, and others that do on its core, keep each other from being joined

RATE_FPS = 20_000
QUEUE = 1024
"""Frames that the tester puts into a queue of its own making before it finds it full."""
LONGEST_QUEUE = 4096
"""... where the ring is packed."""
needs_testpmd = pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs Debian's dpdk-dev")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket's."""
    with TemporaryDirectory(prefix="dutperf-") as made:
        yield Path(made)


def both_ways(engine: EngineTester, **members: object) -> TrialResult:
    """A trial in both directions."""
    one = stream(rate_fps=RATE_FPS)
    return engine.run(trial(one, reversed_stream(one), **members))


def check(result: TrialResult) -> bool:
    """Whether all arrived. Every frame was sent, and where those are that did not arrive is known:
    lost at the DUT's input, or still in its queue."""
    for counts in result.directions().values():
        assert (counts.duplicates, counts.out_of_order, counts.corrupted, counts.tester_drops) == (0, 0, 0, {})
        assert counts.receive_backlog is not None
        assert counts.receive_backlog.ring is not None
        assert result.verdict is Verdict.INVALID or counts.sent == counts.intended
        assert (
            counts.receive_backlog.frames > counts.receive_backlog.ring / 2
            or 0 <= counts.lost - counts.dut_input_drops <= LONGEST_QUEUE
        )
    return all(counts.received == counts.sent for counts in result.directions().values())


def check_until_all_arrive(engine: EngineTester) -> None:
    """Trials, until a busy machine lets the switch forward everything."""
    assert any(check(both_ways(engine, trial=number)) for number in range(1, 100))


SWITCHES = [
    pytest.param("net_vhost{n},iface={s}", "virtio_user:{s}", id="virtio_user"),
    pytest.param(
        "net_vhost{n},iface={s}", "virtio_user:{s},packed_vq=1", id="virtio_user-packed", marks=pytest.mark.long
    ),
    pytest.param("net_memif{n},role=server,socket={s},socket-abstract=no", "memif:{s}", id="memif"),
]


@needs_testpmd
@pytest.mark.parametrize(("device", "port"), SWITCHES)
def test_a_switch_that_listens_is_joined(open_engine: OpenEngine, folder: Path, device: str, port: str) -> None:
    sockets = [folder / side for side in ("left", "right")]
    devices = [device.format(n=n, s=path) for n, path in enumerate(sockets)]
    with (
        running_testpmd(folder, *devices),
        open_engine(*(port.format(s=path) for path in sockets), **cores()) as engine,
    ):
        assert engine.environment()["left"]["link_up"]
        check_until_all_arrive(engine)


CONNECTING = [
    pytest.param("net_virtio_user{n},path={s},queue_size=1024", "vhost_user:{s}", id="vhost_user"),
    pytest.param("net_vhost{n},iface={s},client=1", "virtio_user:{s},server=1", id="virtio_user-server"),
    pytest.param(
        "net_memif{n},role=client,socket={s},socket-abstract=no", "memif:{s},role=server,rsize=10", id="memif-server"
    ),
]


@needs_testpmd
@pytest.mark.parametrize(("device", "port"), CONNECTING)
def test_a_switch_that_connects_is_waited_for(open_engine: OpenEngine, folder: Path, device: str, port: str) -> None:
    """The sockets of killed processes are in the way of nobody."""
    sockets = [folder / side for side in ("left", "right")]
    for path in sockets:
        leave_behind(path, socket.SOCK_SEQPACKET if port.startswith("memif") else socket.SOCK_STREAM)
    left = {path: made_at(path) for path in sockets}
    devices = [device.format(n=n, s=path) for n, path in enumerate(sockets)]
    with open_engine(*(port.format(s=path) for path in sockets), link_timeout_ms=60_000, **cores()) as engine:
        opened: list[object] = []
        opening = threading.Thread(target=lambda: opened.append(engine.environment()))
        opening.start()
        first_made = (
            sockets[:1] if "server=1" in port else sockets
        )  # such a port waits for the switch before the next one is opened
        await_true(lambda: all(made_at(path) not in (0, left[path]) for path in first_made), "the tester listens")
        with running_testpmd(folder, *devices):
            opening.join(60)
            assert opened
            check_until_all_arrive(engine)


def made_at(path: Path) -> int:
    """When a file was made, in ns; 0: there is none."""
    return path.stat().st_ctime_ns if path.exists() else 0


def leave_behind(path: Path, kind: socket.SocketKind) -> None:
    """A socket on which nobody listens any more."""
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.bind(str(path))


@needs_testpmd
def test_queues_are_as_many_as_the_switch_has(open_engine: OpenEngine, folder: Path) -> None:
    sockets = [folder / side for side in ("left", "right")]
    devices = [f"net_vhost{n},iface={path},queues=2" for n, path in enumerate(sockets)]
    ports = [f"virtio_user:{path}" for path in sockets]
    with (
        running_testpmd(folder, *devices, options=("--rxq=2", "--txq=2")),
        open_engine(*ports, queues=2, **cores()) as engine,
    ):
        check_until_all_arrive(engine)


@needs_testpmd
def test_what_a_switch_does_not_fetch_is_its_loss(open_engine: OpenEngine, folder: Path) -> None:
    """It has a link and does not forward: its queues fill, and what finds no room is lost at its
    input."""
    sockets = [folder / side for side in ("left", "right")]
    devices = [f"net_vhost{n},iface={path}" for n, path in enumerate(sockets)]
    with (
        running_testpmd(folder, *devices, forwards=False),
        open_engine(*(f"virtio_user:{path}" for path in sockets), **cores()) as engine,
    ):
        result = both_ways(engine)
    for counts in result.directions().values():
        assert result.verdict is Verdict.INVALID or counts.sent == counts.intended
        assert counts.lost == counts.sent
        assert counts.dut_input_drops == counts.sent - QUEUE
        assert counts.tester_drops == {}


@needs_testpmd
def test_a_switch_that_ends_makes_the_trial_invalid(open_engine: OpenEngine, folder: Path) -> None:
    sockets = [folder / side for side in ("left", "right")]
    devices = [f"net_vhost{n},iface={path}" for n, path in enumerate(sockets)]
    with (
        running_testpmd(folder, *devices) as switch,
        open_engine(*(f"virtio_user:{path}" for path in sockets), link_timeout_ms=1_000, **cores()) as engine,
    ):
        check(both_ways(engine))
        threading.Timer(0.1, switch.kill).start()
        results = (both_ways(engine, trial=number) for number in range(2, 100))
        first = next(
            result for result in results if result.link_changes.left or not result.link_up.left
        )  # when the kernel has closed its sockets
    assert first.verdict is Verdict.INVALID
    assert "link_down" in {cause.code for cause in first.causes}


def test_a_socket_that_is_not_there_is_named(open_engine: OpenEngine, folder: Path) -> None:
    with (
        open_engine(f"virtio_user:{folder}/none", "null") as engine,
        pytest.raises(TesterError, match=f"no socket {folder}/none") as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_away", "left.port")


@pytest.mark.parametrize(("port", "said"), [("virtio_user:{s}", "nobody listens"), ("memif:{s}", "nobody listens")])
def test_a_socket_whose_program_has_ended_is_named(open_engine: OpenEngine, folder: Path, port: str, said: str) -> None:
    leave_behind(folder / "dead", socket.SOCK_SEQPACKET if port.startswith("memif") else socket.SOCK_STREAM)
    with (
        open_engine(port.format(s=folder / "dead"), "null") as engine,
        pytest.raises(TesterError, match=said) as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_away", "left.port")


def test_who_never_answers_is_not_waited_for_for_ever(open_engine: OpenEngine, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(folder / "mute"))
        mute.listen()
        engine = open_engine(f"virtio_user:{folder}/mute", "null", link_timeout_ms=300)
        with pytest.raises(TesterError, match="nobody answered on the socket") as caught:
            engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_away", "left.port")


@pytest.mark.parametrize(
    ("port", "code"),
    [
        ("virtio_user:{s},server=1", "port_away"),
        ("vhost_user:{s}", "link_down"),
        ("memif:{s},role=server", "link_down"),
    ],
)
def test_who_never_comes_is_not_waited_for_for_ever(
    open_engine: OpenEngine, folder: Path, port: str, code: str
) -> None:
    with (
        open_engine(port.format(s=folder / "alone"), "null", link_timeout_ms=300) as engine,
        pytest.raises(TesterError) as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == (code, "left.port")
