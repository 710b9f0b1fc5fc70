# SPDX-License-Identifier: Apache-2.0
"""Shared memory (memif) between the tester and a DUT that is a DPDK program, instead of cables: without the
kernel, for DUTs of millions of frames/s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dutperf.lab.site import Site


@dataclass(frozen=True)
class Ports:
    """Port specs of both sides."""

    left: str
    right: str


def memory_ports(site: Site, role: Literal["client", "server"], max_frame_size: int) -> Ports:
    """One end of the link on each side; the DUT is the server."""
    slot = 1 << (max_frame_size - 1).bit_length()
    ends = (
        f"vdev:net_memif_{side},role={role},bsize={slot},socket={site.directory / side}.memif,socket-abstract=no"
        for side in ("left", "right")
    )
    return Ports(*ends)
