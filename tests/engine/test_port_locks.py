# SPDX-License-Identifier: Apache-2.0
"""Two runs of dutperf: one has the ports, and the frames of one are not counted as those of the other."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.tester import TesterError

from .conftest import OpenEngine
from .streams import stream, trial

OpenCapture = Callable[..., tuple[EngineTester, dict[str, Path]]]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@pytest.fixture
def cable() -> Iterator[str]:
    """A namespace with both ends of a cable and of another one; returns its name."""
    name = f"dutperf-test-{secrets.token_hex(4)}"
    ip("netns", "add", name)
    try:
        for near, far in (("one", "two"), ("three", "four")):
            ip("-n", name, "link", "add", near, "type", "veth", "peer", "name", far)
            for end in (near, far):
                ip("-n", name, "link", "set", end, "up")
        yield name
    finally:
        ip("netns", "del", name)


def opened(netns: str, left: str, right: str) -> EngineTester:
    parameters = {side: {"port": port} for side, port in (("left", left), ("right", right))}
    return EngineTester(
        EngineCommand.find(netns=netns), parameters | {"memory": "no_huge_pages", "max_frame_size": 1518}
    )


@pytest.mark.root
def test_a_second_run_is_told_who_has_the_port_by_whatever_name(cable: str) -> None:
    other_name = f"{cable}-too"
    Path(f"/run/netns/{other_name}").touch()
    subprocess.run(["mount", "--bind", f"/run/netns/{cable}", f"/run/netns/{other_name}"], check=True)
    try:
        with opened(cable, "one", "two") as first, opened(cable, "three", "four") as beside:
            first.environment()
            beside.environment()  # other ports of the same namespace
            with opened(other_name, "af_packet:two", "vdev:net_null0") as second, pytest.raises(TesterError) as refused:
                second.environment()
            assert (refused.value.code, refused.value.field) == ("port_away", "left.port")
            assert "process " in str(refused.value)
        with opened(other_name, "af_packet:two", "vdev:net_null0") as again:
            again.environment()
    finally:
        subprocess.run(["umount", f"/run/netns/{other_name}"], check=True)
        Path(f"/run/netns/{other_name}").unlink()


def test_frames_of_another_run_are_counted_by_name(open_capture: OpenCapture, open_engine: OpenEngine) -> None:
    """They have the same trial number, and sequence numbers of this trial too."""
    before, files = open_capture()
    one = trial(stream(4, 84, rate_fps=2000))
    sent = before.run(one)
    before.close()
    assert sent.forward is not None
    right = {"port": f"vdev:net_pcap_right,rx_pcap={files['left']},infinite_rx=1", "mac": "02:00:00:00:00:02"}
    result = open_engine("null", right).run(one)
    assert result.forward is not None
    assert (result.forward.received, result.forward.corrupted, result.forward.stale) == (0, 0, 0)
    assert result.forward.other_received["other_run"] > 0
    assert "other_run" in {cause.code for cause in result.causes}
