# SPDX-License-Identifier: Apache-2.0
"""Which cores the DUT has, which the tester's loops have, and why: told by the configuration, or
found by looking where the tester's ports lead to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dutperf.tester import namespace_probe, socket_peers
from dutperf.tester.cpu_sets import Cores, as_list
from dutperf.tester.dut_core import DutCores
from dutperf.tester.dut_discovery import Discovery, discover

LOCAL = ("sudo", "doas", "env", "nice", "taskset", "ip", "nsenter")
"""What may stand before the engine's command and leaves it on this machine."""
PROBE_S = 10.0
"""Seconds that the probe may take."""
_KERNEL_PORT = re.compile(r"(?:af_xdp:|af_packet:)?([^\s/:,]{1,15})")


@dataclass(frozen=True)
class CoreChoice:
    """The DUT's cores, to be kept off and watched, and where that is known from."""

    dut_cores: tuple[int, ...] = ()
    why: str = ""
    """A clause, or nothing where no DUT is here."""
    told: DutCores | None = None
    discovery: Discovery | None = None
    is_here: bool = field(default=False, compare=False)
    """The engine runs on this machine."""

    def watched(self, environment: Mapping[str, Any]) -> DutCores | None:
        """The cores on which others' work would disturb the DUT; ``environment`` says where the
        tester's loops are.

        A DUT that may be anywhere has one core to itself where the tester leaves no other.
        """
        found = self.discovery
        if found is None:
            if self.told is None:
                return None
            switches = socket_peers.pids(environment.get(side, {}).get("port", "") for side in ("left", "right"))
            return replace(self.told, pids=(*self.told.pids, *switches))
        anywhere = Cores().union(*(work.cores for work in found.floating)) - _loops(environment)
        cores = tuple(sorted(found.cores - _loops(environment))) or (tuple(anywhere) if len(anywhere) == 1 else ())
        readable = os.geteuid() == 0 or not any(
            work.is_process for work in found.works
        )  # else their time would look like that of others
        return DutCores(cores, None, found.namespaces, found.pids) if cores and readable else None

    def stated(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """For the result: the cores of both, and why, as JSON types."""
        loops = _loops(environment)
        shared = sorted(loops & set(self.dut_cores))
        said = [self.why] if self.why else []
        said += (
            [
                f"the tester's loops have {named(loops)}"
                + (f", where the DUT works too: {named(shared)}" if shared else "")
            ]
            if loops
            else []
        )
        return {"core_choice": {"tester": sorted(loops), "dut": list(self.dut_cores), "why": "; ".join(said)}}


def told(dut_cores: Sequence[int], netns: str | None, *, here: bool) -> CoreChoice:
    """The configuration names the DUT's cores, and its network namespace; whether they are those of
    this machine, so that they can be watched."""
    watched = DutCores(tuple(dut_cores), netns) if here else None
    return CoreChoice(tuple(dut_cores), f"the configuration gives the DUT {named(dut_cores)}", watched, is_here=here)


def look(argv: Sequence[str], ports: Sequence[str]) -> CoreChoice:
    """Look where the ports (port specs) of an engine lead to that is started by ``argv``, its last
    word the engine's program."""
    names = [match[1] for port in ports if port not in ("ring", "null") and (match := _KERNEL_PORT.fullmatch(port))]
    if not names:
        return CoreChoice(is_here=len(argv) == 1 or Path(argv[0]).name in LOCAL)
    if len(argv) > 1 and Path(argv[0]).name not in LOCAL:
        return CoreChoice(
            why=(
                f"the engine is started by {argv[0]}, so nobody looked where the DUT works: give engine.dut_cores if it"
                " is on the same machine"
            )
        )
    try:
        facts = _probed([*argv[:-1], sys.executable, "-I", "-S", namespace_probe.__file__])
        found = discover(facts, names, shared=[Path("/proc/self/ns/net").stat().st_ino])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return CoreChoice(
            why=f"where the DUT works was not found ({_reason(error)}): give engine.dut_cores if it is on this machine",
            is_here=True,
        )
    return CoreChoice(tuple(sorted(found.cores)), _why(found), discovery=found, is_here=True)


def _probed(argv: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROBE_S,
        start_new_session=True,
    )
    if done.returncode != 0:
        raise ValueError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _reason(error: Exception) -> str:
    return f"no answer within {PROBE_S:g} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)


def _why(found: Discovery) -> str:
    """What was found, in a sentence without its end."""
    if len(found.missing) == len(found.ports):
        return f"no DUT was found on this machine behind {' and '.join(found.missing)}"
    confined = [f"{work.what} on {named(work.cores)}" for work in found.confined]
    floating = [f"{work.what} on any core" for work in found.floating]
    kernel = [] if found.steered else ["its kernel's work is done on the core of whoever sends"]
    return "the DUT: " + ", ".join([*confined, *floating, *kernel])


def named(cores: Cores | Sequence[int]) -> str:
    """``core 1``, ``cores 1-3``."""
    return f"{'core' if len(cores) == 1 else 'cores'} {as_list(cores)}"


def _loops(environment: Mapping[str, Any]) -> Cores:
    return frozenset(environment.get("roles", {}).values())
