# SPDX-License-Identifier: Apache-2.0
"""The machine that a measurement runs on, for the journal (RFC 2544 section 10, RFC 8219 section 5:
results state their conditions)."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from dutperf.machine import cpu_quota
from dutperf.machine.access import Machine
from dutperf.machine.processor import cpu_model
from dutperf.version import __version__

TUNING = (
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "mitigations",
    "idle",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "intel_iommu",
    "iommu",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "nosmt",
    "preempt",
    "tsc",
    "clocksource",
)
"""Kernel command-line options that affect a tester; the others stay private."""


def environment(root: Path = Path("/")) -> dict[str, Any]:
    """Host name, CPU, cores, kernel, its tuning options, frequency governor, clock source, memory
    and versions, as JSON types; None where unknown.

    ``root`` replaces / in tests.
    """
    return {
        "name": platform.node(),
        "cpu": cpu_model(_text(root / "proc/cpuinfo")) or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": sorted(os.sched_getaffinity(0)),
        "cpu_quota": cpu_quota.quota_cores(Machine(root=root)),
        "memory_kb": int(_find(root / "proc/meminfo", r"^MemTotal:\s*(\d+) kB$") or 0) or None,
        "kernel": platform.release(),
        "kernel_options": _tuning(root / "proc/cmdline"),
        "governor": _find(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"^(\S+)$"),
        "clock_source": _find(root / "sys/devices/system/clocksource/clocksource0/current_clocksource", r"^(\S+)$"),
        "dutperf": __version__,
        "python": platform.python_version(),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _find(path: Path, pattern: str) -> str | None:
    match = re.search(pattern, _text(path), re.MULTILINE)
    return match[1].strip() if match else None


def _tuning(command_line: Path) -> list[str]:
    return [option for option in (_find(command_line, r"^(.+)$") or "").split() if option.partition("=")[0] in TUNING]
