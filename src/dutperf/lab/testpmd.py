# SPDX-License-Identifier: Apache-2.0
"""DPDK's ``dpdk-testpmd`` as a DUT of millions of frames/s: it forwards between two ports of shared memory.

Two lcores share the DUT's core; the main one sleeps. It has no memory in huge pages, so it runs everywhere.
A frame that finds the other end's ring full is lost; testpmd's counters show it (:func:`losses`).
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dutperf.lab import outage, telemetry
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.memif import memory_ports
from dutperf.lab.netns import standalone
from dutperf.lab.site import Site, await_start
from dutperf.lab.transparent import TransparentOptions, tester_sides

TESTER_MACS = ("02:00:00:00:02:01", "02:00:00:00:02:02")
"""Of the left and of the right port: testpmd is told to which MAC addresses it forwards."""
STARTED = "packet forwarding - ports=2"
"""testpmd's message when it forwards."""
MEMORY_MB, BUFFERS = 192, 16_384


class TestpmdOptions(TransparentOptions, ResetOptions):
    """The kind of forwarding, and the sizes of what holds frames."""

    forward: Annotated[
        Literal["io", "mac", "macswap"],
        Field(
            description="io: frames unchanged; mac: to the tester's MAC address, from the DUT's; macswap: source and"
            " destination exchanged"
        ),
    ] = "io"
    burst: Annotated[int, Field(ge=1, le=512, description="frames forwarded at once, at most")] = 32


def build(site: Site, options: TestpmdOptions) -> dict[str, Any]:
    site.add_memory_dut()
    start(site, options)
    client = memory_ports(site, "client", options.max_frame_size)
    sides = tester_sides(client.left, client.right, options.version)
    for side, mac in zip(("left", "right"), TESTER_MACS, strict=True):
        sides[side]["mac"] = mac
    return {
        "engine": {"dut_cores": [site.dut_core]},
        **sides,
        "dut": {
            "name": f"testpmd ({options.forward})",
            "version": version(site),
            "kernel": platform.release(),
            "cores": [site.dut_core],
            "burst": options.burst,
            "commands": {"losses": losses(site), "reset": reset(site, options)},
        },
    }


def start(site: Site, options: TestpmdOptions) -> None:
    """Start testpmd; returns when it forwards. Raises LabError: it did not start."""
    log = log_file(site)
    os.mkfifo(prompt(site))
    argv = [f"RUNTIME_DIRECTORY={site.directory}", "dpdk-testpmd", *command_line(site, options)]
    # opened for both directions, the pipe never ends
    daemon = site.start_daemon(["sh", "-c", f'exec "$@" <> {prompt(site)}', "sh", "env", *argv], log)
    await_start(daemon, log, f"lab {site.record.lab}: testpmd", lambda: STARTED in log.read_text(errors="replace"))


def command_line(site: Site, options: TestpmdOptions) -> list[str]:
    server = memory_ports(site, "server", options.max_frame_size)
    devices = (port.removeprefix("vdev:") for port in (server.left, server.right))
    core = site.dut_core
    room = ((options.max_frame_size + 127) // 64 + 2) * 64
    return [
        f"--lcores=0@{core},1@{core}",
        "--main-lcore=0",
        "-v",
        *("--no-huge", "--no-pci", "--iova-mode=va", "-m", str(MEMORY_MB)),
        *(f"--vdev={device}" for device in devices),
        "--",
        f"--forward-mode={options.forward}",
        *(f"--eth-peer={port},{mac}" for port, mac in enumerate(TESTER_MACS)),
        f"--burst={options.burst}",
        f"--total-num-mbufs={BUFFERS}",
        f"--mbuf-size={max(2176, room + 128)}",
        "--disable-link-check",
        *("--interactive", "--auto-start"),
    ]


def losses(site: Site) -> list[str]:
    """The command that prints how many frames testpmd received and did not forward, by direction."""
    return standalone(telemetry, str(site.directory))


def prompt(site: Site) -> Path:
    """The pipe from which testpmd reads its commands."""
    return site.directory / "testpmd.prompt"


def reset(site: Site, options: TestpmdOptions) -> list[str]:
    """The command that makes testpmd drop what it receives for ``reset_s`` seconds. Would it only stop, the rings
    would fill, and the tester could not send."""

    def turn(mode: str) -> str:
        return f"printf 'stop\\nset fwd {mode}\\nstart\\n' > {prompt(site)}"

    return ["sh", "-ec", outage.script(turn("rxonly"), options.reset_s, turn(options.forward))]


def version(site: Site) -> str:
    """Of DPDK, from testpmd's first messages."""
    return log_file(site).read_text(errors="replace").partition("RTE Version: ")[2].partition("\n")[0].strip("'")


def log_file(site: Site) -> Path:
    return site.directory / "testpmd.log"


LAB = Lab(
    name="testpmd",
    summary="DPDK's testpmd, which forwards between ports of shared memory: a DUT of millions of frames/s",
    options=TestpmdOptions,
    programs={"dpdk-testpmd": "dpdk-dev"},
    build=build,
)
