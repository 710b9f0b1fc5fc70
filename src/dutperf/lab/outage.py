# SPDX-License-Identifier: Apache-2.0
"""The script of a reset: it stops the DUT of a lab, and starts it again also where it is ended early."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf.lab.netns import Namespace


def script(stop: str, duration_s: float, start: str) -> str:
    """To run by ``sh -e``. ``start`` runs where ``stop`` failed, too."""
    return f"trap {shlex.quote(start)} EXIT; trap 'exit 1' TERM; {stop}; sleep {duration_s:g} & wait $!"


@dataclass(frozen=True)
class Daemons:
    """Processes of a DUT that are all started alike."""

    program: str
    argv: Sequence[str]
    logs: Sequence[Path]
    """One for each process."""
    cores: Sequence[int]
    are_ready: str
    """Condition of the shell in the DUT's namespace: they work."""


def restart(dut: Namespace, daemons: Daemons, duration_s: float, forget: str = "true") -> list[str]:
    """The command that kills them, does ``forget``, and restarts them ``duration_s`` seconds later on the same cores
    and with the same priority. It ends when they are ready."""
    is_one = f'[ "$(readlink /proc/$pid/exe)" = "$(realpath "$(command -v {daemons.program})")" ]'
    kill = f"for pid in $(ip netns pids {dut.name}); do {is_one} && kill -KILL $pid || true; done"
    pinned = dut.command(["taskset", "--cpu-list", ",".join(map(str, daemons.cores)), *daemons.argv])
    again = f"echo -20 > /proc/self/autogroup || true; exec {shlex.join(pinned)}"
    starts = (f"setsid sh -c {shlex.quote(again)} >> {log} 2>&1 &" for log in daemons.logs)
    late = f"echo {daemons.program} did not start again; exit 1"
    wait = dut.command(["sh", "-c", f"for i in $(seq 200); do {daemons.are_ready} && exit; sleep 0.05; done; {late}"])
    return ["sh", "-ec", script(f"{kill}; {forget}", duration_s, f"{' '.join(starts)} {shlex.join(wait)}")]
