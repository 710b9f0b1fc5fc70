# SPDX-License-Identifier: Apache-2.0
"""How much CPU time this process and its children may use: the cores of its cpuset, and the quotas of its
control groups (cgroups(7); ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1).

A quota stops all threads of the group for the rest of each period once it is used up. The kernel counts
that; to the tester it looks like other load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from dutperf.machine.access import Machine

_MOUNTS = {2: ("sys/fs/cgroup", "sys/fs/cgroup/unified"), 1: ("sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu")}
_STOPPED = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Lines of ``cpu.stat`` of both versions, and their units in seconds."""


def quota_cores(machine: Machine) -> float | None:
    """The smallest quota, in cores; None: there is none."""
    found = [quota for group in _groups(machine) if (quota := _quota(machine, group)) is not None]
    return min(found, default=None)


def stopped_s(machine: Machine) -> float:
    """For how long quotas have stopped threads of this process's groups so far, summed over the cores."""
    counted = [
        int(number) * _STOPPED[name]
        for group in _groups(machine)
        for name, number in re.findall(
            r"^(throttled_\w+) (\d+)$", machine.read(f"{group}/cpu.stat") or "", re.MULTILINE
        )
        if name in _STOPPED
    ]
    return max(counted, default=0.0)


def _groups(machine: Machine) -> Iterator[str]:
    """The directories of the control groups of this process, and of those around them."""
    for line in (machine.read("proc/self/cgroup") or "").split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not path or (controllers and "cpu" not in controllers.split(",")):
            continue
        for mount in _MOUNTS[1 if controllers else 2]:
            inside = PurePosixPath(path.lstrip("/"))
            yield from (f"{mount}/{group}" for group in (inside, *inside.parents) if str(group) != ".")
            yield mount  # in a container the group is the root of the mount


def _quota(machine: Machine, group: str) -> float | None:
    limit = machine.read(f"{group}/cpu.max")
    words = [machine.read(f"{group}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    quota, period = limit.split() if limit is not None and len(limit.split()) == 2 else words
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None
