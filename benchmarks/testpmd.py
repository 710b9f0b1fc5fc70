# SPDX-License-Identifier: Apache-2.0
"""The reference: ``dpdk-testpmd`` that sends the same buffers from one core to null ports, in
bursts of 32, as fast as it can."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PROGRAM = "dpdk-testpmd"
PROMPT = b"testpmd> "
MEASURED_S = 0.3


class Testpmd:
    """A running testpmd, which rests between two measurements. A context manager."""

    def __init__(self, core: int, other_core: int, *, huge_pages: bool, ports: int = 1) -> None:
        """It sends from ``core`` on each of ``ports``; its command line lives on ``other_core``.
        Its memory is as the engine's."""
        memory = ["--in-memory"] if huge_pages else ["--no-huge", "--no-shconf"]
        environment = [
            "-l",
            f"{other_core},{core}",
            f"--main-lcore={other_core}",
            "--no-pci",
            "--no-telemetry",
            "-m",
            "256",
            *memory,
        ]
        forwarding = [
            "--forward-mode=txonly",
            "--burst=32",
            "--txpkts=60",
            "--nb-cores=1",
            "--port-topology=chained",
            "--no-mlockall",
            "--total-num-mbufs=4096",
        ]
        devices = [f"--vdev=net_null{number},size=60" for number in range(ports)]
        command = ["stdbuf", "--output=0", PROGRAM, *environment, *devices, "--", "--interactive", *forwarding]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_claim_core
        )
        self._until_prompt()

    def measure(self) -> float:
        """Frames/s that it sends now on the first port."""
        self._say("start")
        time.sleep(0.05)
        self._sent()
        began_s = time.perf_counter()
        before = self._sent()
        time.sleep(MEASURED_S)
        after = self._sent()
        elapsed_s = time.perf_counter() - began_s
        self._say("stop")
        return (after - before) / elapsed_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _sent(self) -> int:
        said = self._say("show port stats 0")
        return sum(int(count) for count in re.findall(r"TX-packets:\s*(\d+)", said))

    def _say(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        return self._until_prompt()

    def _until_prompt(self) -> str:
        assert self._process.stdout is not None
        said = b""
        while not said.endswith(PROMPT):
            byte = self._process.stdout.read1(1)  # type: ignore[attr-defined]
            if not byte:
                raise RuntimeError(f"{PROGRAM} ended: {said.decode(errors='replace')[-500:]}")
            said += byte
        return said.decode(errors="replace")


def _claim_core() -> None:
    """It gets its core as the engine does (``claim_cores`` in engine/platform/cores.cpp), else what is
    compared is luck."""
    Path("/proc/self/autogroup").write_text("-20")
