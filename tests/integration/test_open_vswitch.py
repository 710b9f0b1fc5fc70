# SPDX-License-Identifier: Apache-2.0
"""A trial through Open vSwitch with DPDK, which connects to the sockets of the tester (vhost-user).
It needs root and, while it runs, huge pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import FieldMode, FrameSpec, Stream, Trial, VaryingField, Verdict
from switches import OpenVSwitch, cores, has_open_vswitch, huge_pages

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not has_open_vswitch(), reason="needs Debian's openvswitch-switch-dpdk"),
]

_HUGE_PAGES_MB = 320
_RATE_FPS = 20_000


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket's."""
    with TemporaryDirectory(prefix="dutperf-") as made:
        yield Path(made)


def _stream(source: str, destination: str) -> Stream:
    ports = VaryingField(mode=FieldMode.RANDOM, min=1024, max=65535)
    frame = FrameSpec.model_validate({"version": 4, "size": 64, "source": source, "destination": destination})
    return Stream(rate_fps=_RATE_FPS, foreground=frame, source_port=ports, destination_port=ports)


def _trial(number: int) -> Trial:
    left, right = "198.18.0.2", "198.18.0.3"
    forward, reverse = _stream(left, right), _stream(right, left)
    return Trial(forward=forward, reverse=reverse, trial=number, duration_ns=500_000_000, drain_ns=100_000_000, seed=1)


@pytest.mark.long
def test_open_vswitch_forwards_what_the_tester_sends(folder: Path) -> None:
    sockets = {name: folder / f"{name}.socket" for name in ("left", "right")}
    sides = {name: {"port": f"virtio_user:{path},server=1"} for name, path in sockets.items()}
    interfaces = {
        name: {"type": "dpdkvhostuserclient", "options:vhost-server-path": str(path)} for name, path in sockets.items()
    }
    with huge_pages(_HUGE_PAGES_MB) as enough:
        if not enough:
            pytest.skip(f"no {_HUGE_PAGES_MB} MB of huge pages")
        switch = OpenVSwitch(folder, interfaces)
        try:
            with EngineTester(
                EngineCommand.find(), {**sides, "memory": "no_huge_pages", "link_timeout_ms": 60_000, **cores()}
            ) as tester:
                results = [tester.run(_trial(number)) for number in range(1, 6)]
            counted = switch.statistics("left")
        finally:
            switch.end()
    assert any(counts.received > 0 for result in results for counts in result.directions().values()), counted
    for counts in (
        counts for result in results if result.verdict is Verdict.VALID for counts in result.directions().values()
    ):
        assert counts.sent == counts.intended
        assert (counts.corrupted, counts.duplicates, counts.tester_drops) == (0, 0, {})
