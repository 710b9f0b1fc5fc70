# SPDX-License-Identifier: Apache-2.0
"""The cores of the DUT and of the tester's loops, and the reason: from the configuration, or detected
behind the tester's ports."""

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

from dutperf.machine.cpu_sets import Cores, as_list, siblings
from dutperf.model import ports_of
from dutperf.spelling import with_and
from dutperf.watch import namespace_probe, socket_peers
from dutperf.watch.dut_core import DutCores
from dutperf.watch.dut_discovery import Discovery, discover

LOCAL = ("sudo", "doas", "env", "nice", "taskset", "ip", "nsenter")
"""Command prefixes that start the engine on this machine, unless one of these follows."""
ELSEWHERE = frozenset({"ssh", "docker", "podman", "lxc-attach", "kubectl"})
PROBE_S = 10.0
"""Time limit of the probe, in seconds."""
_KERNEL_PORT = re.compile(r"(?:af_xdp:|af_packet:)?([^\s/:,]{1,15})")


@dataclass(frozen=True)
class CoreChoice:
    """The DUT's cores, which the tester avoids and watches, and how they were determined."""

    dut_cores: tuple[int, ...] = ()
    why: str = ""
    """A clause; empty where no DUT is on this machine."""
    configured: DutCores | None = None
    discovery: Discovery | None = None
    is_here: bool = field(default=False, compare=False)
    """The engine runs on this machine."""
    is_row: bool = field(default=False, compare=False)
    """Several DUTs are in a row."""

    def watched(self, environment: Mapping[str, Any]) -> DutCores | None:
        """The cores on which other processes would disturb the DUT; ``environment`` has the cores of
        the tester's loops.

        A DUT that may run on any core has one to itself where the tester leaves only one.
        """
        discovery = self.discovery
        # Without access to the DUT's processes, their time would count as that of others.
        if discovery is not None and os.geteuid() != 0 and any(work.is_process for work in discovery.works):
            return None
        if self.configured is not None:
            switches = socket_peers.pids(port.get("port", "") for port in ports_of(environment).values())
            return replace(
                self.configured,
                by_tester=bool(set(self.configured.cores) & _loops(environment)),
                namespaces=() if discovery is None else discovery.namespaces,
                pids=(*self.configured.pids, *(() if discovery is None else discovery.pids), *switches),
                share_one=self.is_row and len(self.configured.cores) == 1,
            )
        if discovery is None:
            return None
        anywhere = Cores().union(*(work.cores for work in discovery.floating)) - _loops(environment)
        cores = tuple(sorted(discovery.cores - _loops(environment))) or (tuple(anywhere) if len(anywhere) == 1 else ())
        cores = cores or tuple(sorted(discovery.cores))  # all of which the loops have too
        if not cores:
            return None
        return DutCores(
            cores,
            namespaces=discovery.namespaces,
            pids=discovery.pids,
            may_be_idle=not discovery.steered,
            share_one=self.is_row and len(cores) == 1,
            by_tester=bool(set(cores) & _loops(environment)),
        )

    def stated(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """The cores of both and the reason, for the result, as JSON types."""
        loops = _loops(environment)
        shared = sorted(loops & set(self.dut_cores))
        # Two of them share one physical core: each is slower by what the other does, which no counter shows.
        threads = sorted(loops & Cores().union(*map(siblings, self.dut_cores))) if self.is_here else []
        reasons = [self.why] if self.why else []
        if self.dut_cores and self.is_here and self.watched(environment) is None:
            reasons.append("nobody watches what others take of these cores: that needs root")
        reasons += (
            [
                f"the tester's loops have {named(loops)}"
                + (f", where the DUT works too: {named(shared)}" if shared else "")
                + (f", hardware threads of the DUT's: {named(threads)}" if threads else "")
            ]
            if loops
            else []
        )
        return {"core_choice": {"tester": sorted(loops), "dut": list(self.dut_cores), "why": "; ".join(reasons)}}


def configured(
    dut_cores: Sequence[int], netns: Sequence[str], *, here: bool, found: Discovery | str | None = None
) -> CoreChoice:
    """The choice where the configuration names the DUT's cores. ``here``: they are on this machine and can be
    watched; its processes are those in the namespaces ``netns``, or else the ``found`` ones (a text: why not)."""
    why = f"the configuration gives the DUT {named(dut_cores)}"
    if isinstance(found, Discovery) and (further := found.cores - set(dut_cores)):
        confined = [
            f"{work.what} on {named(work.cores)}" for work in found.confined if not work.cores <= set(dut_cores)
        ]
        why += f"; of it was found besides: {', '.join(confined)}"
        dut_cores = sorted({*dut_cores, *further})
    if isinstance(found, str):
        why += f"; its processes could not be detected ({found}), so nobody watches what others take of them: give"
        return CoreChoice(tuple(dut_cores), f"{why} engine.dut_netns", is_here=here)
    watched = DutCores(tuple(dut_cores), tuple(netns)) if here else None
    return CoreChoice(tuple(dut_cores), why, watched, discovery=found, is_here=here)


def detect(argv: Sequence[str], ports: Sequence[str]) -> CoreChoice:
    """Detect the DUT behind the ports (port specs) of the engine that ``argv`` starts, whose last
    word is the engine's program."""
    found = behind(argv, ports)
    if found is None:
        return CoreChoice(is_here=is_here(argv))
    if isinstance(found, str):
        return CoreChoice(
            why=f"the DUT's cores could not be detected ({found}): give engine.dut_cores if it is on the same machine",
            is_here=is_here(argv),
        )
    return CoreChoice(tuple(sorted(found.cores)), _why(found), discovery=found, is_here=True)


def interface_of(port: str) -> str | None:
    """The kernel's interface that a port is; None: it is none."""
    match = None if port in ("ring", "null") else _KERNEL_PORT.fullmatch(port)
    return match and match[1]


def behind(argv: Sequence[str], ports: Sequence[str]) -> Discovery | str | None:
    """The DUT behind the ports of an engine, or why it is not known; None: no port is the kernel's."""
    names = [name for port in ports if (name := interface_of(port))]
    if not names:
        return None
    if not is_here(argv):
        return f"the engine is started by {argv[0]}"
    try:
        facts = _probed([*argv[:-1], sys.executable, "-I", "-S", namespace_probe.__file__])
        return discover(facts, names, shared=[Path("/proc/self/ns/net").stat().st_ino])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return _reason(error)


def is_here(argv: Sequence[str]) -> bool:
    """Whether the engine that ``argv`` starts runs on this machine."""
    names = [Path(word).name for word in argv[:-1]]
    return not names or (names[0] in LOCAL and not ELSEWHERE.intersection(names))


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
    """The discovery as a clause."""
    if len(found.missing) == len(found.ports):
        return f"no DUT was found on this machine behind {with_and(found.missing)}"
    confined = [f"{work.what} on {named(work.cores)}" for work in found.confined]
    floating = [f"{work.what} on any core" for work in found.floating]
    kernel = [] if found.steered else ["its kernel's work runs on the core of the sender"]
    return "the DUT: " + ", ".join([*confined, *floating, *kernel])


def named(cores: Cores | Sequence[int]) -> str:
    """``core 1``, ``cores 1-3``."""
    return f"{'core' if len(cores) == 1 else 'cores'} {as_list(cores)}"


def _loops(environment: Mapping[str, Any]) -> Cores:
    return frozenset(environment.get("roles", {}).values())
