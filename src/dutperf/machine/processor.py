# SPDX-License-Identifier: Apache-2.0
"""The processor as /proc/cpuinfo describes it, on x86-64 and arm64."""

from __future__ import annotations

import re

ARM64_COUNTER = "arch_sys_counter"
"""The kernel's clock source on arm64: the generic timer's counter. By the architecture it is the same on all cores, and
its speed does not change."""


def cpu_field(cpuinfo: str, name: str) -> str:
    """A field of the first core; empty where there is none."""
    match = re.search(rf"^{name}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def cpu_model(cpuinfo: str) -> str:
    """Name of the processor; on arm64, which gives none, its numbers (``lscpu`` knows the names); empty where there is
    neither."""
    if model := cpu_field(cpuinfo, "model name"):
        return model
    implementer, part = cpu_field(cpuinfo, "CPU implementer"), cpu_field(cpuinfo, "CPU part")
    return f"arm64, implementer {implementer}, part {part}" if implementer and part else ""
