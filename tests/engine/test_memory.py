# SPDX-License-Identifier: Apache-2.0
"""Where the engine's buffers are if no huge pages are reserved: DPDK has a file for them (memfd), which the kernel
gives small pages alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .conftest import OpenEngine
from .streams import stream, trial

FILE = "memfd:nohuge"
DPDKS = range(0x1_0000_0000, 0x2_0000_0000)
"""Where DPDK's memory begins."""
ASKED_FOR = "hg"
"""Flag of a mapping for which huge pages were asked for (proc(5), VmFlags)."""


@dataclass(frozen=True)
class Mapping:
    size: int
    file: str
    flags: tuple[str, ...]


def largest_mapping(pid: int) -> Mapping:
    """Of a process, among those of DPDK's memory."""
    text = Path(f"/proc/{pid}/smaps").read_text(encoding="ascii")
    form = (
        r"^(?P<begin>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ \S+ \d+ *(?P<file>.*)$(?:\n\w+:.*)*\nVmFlags: (?P<flags>.*)$"
    )
    found = (
        Mapping(int(one["end"], 16) - begin, one["file"], tuple(one["flags"].split()))
        for one in re.finditer(form, text, re.MULTILINE)
        if (begin := int(one["begin"], 16)) in DPDKS
    )
    return max(found, key=lambda one: one.size)


def test_buffers_of_the_engine_alone_are_where_the_kernel_gives_huge_pages(open_engine: OpenEngine) -> None:
    engine = open_engine("ring", "ring")
    result = engine.run(trial(stream()))
    assert result.forward is not None
    assert result.forward.received == result.forward.sent
    assert engine._process is not None
    buffers = largest_mapping(engine._process.pid)
    assert buffers.size > 100_000_000
    assert (buffers.file, ASKED_FOR in buffers.flags) == ("", True)


def test_buffers_that_a_device_or_another_process_may_know_stay_in_their_file(open_engine: OpenEngine) -> None:
    engine = open_engine("vdev:net_null0", "null")
    engine.environment()
    assert engine._process is not None
    assert FILE in largest_mapping(engine._process.pid).file
