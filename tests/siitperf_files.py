# SPDX-License-Identifier: Apache-2.0
"""Files for siitperf, and the commands as its scripts start them, for tests."""

from __future__ import annotations

import sys
from pathlib import Path

TRANSLATOR = """\
# a stateless NAT64 gateway
IP-L-Vers 6
IP-R-Vers 4
IPv6-L-Real 2001:2::2
IPv6-R-Real 2001:2:0:8000::2   # for background traffic
IPv4-R-Real 198.19.0.2
IPv4-L-Virt 198.18.0.2
IPv6-R-Virt 2001:2:0:1000::2

  Fwd-var-sport 3
  Fwd-var-dport 3
  Rev-var-sport 3
  Rev-var-dport 3
CPU-L-Send 2
CPU-R-Recv 4
CPU-R-Send 6
CPU-L-Recv 8
"""
ROUTER = """\
IP-L-Vers 4
IP-R-Vers 4
IPv4-L-Real 198.18.0.2
IPv4-R-Real 198.19.0.2
IPv6-L-Real 2001:2::2
IPv6-R-Real 2001:2:0:8000::2
"""
MACS = """\
MAC-L-Tester 02:00:00:00:00:01
MAC-R-Tester 02:00:00:00:00:02
MAC-L-DUT 02:00:00:00:00:0a
MAC-R-DUT 02:00:00:00:00:0b
"""
ENUMERATED = {
    prefix: (
        "Enumerate-ports 3",
        f"{prefix}-sport-min 1024",
        f"{prefix}-sport-max 2023",
        f"{prefix}-dport-min 1",
        f"{prefix}-dport-max 10",
    )
    for prefix in ("Fwd", "Rev")
}
"""Lines of a stateful test with 10,000 combinations, by the Initiator's direction."""


def with_lines(text: str, *lines: str) -> str:
    """``text`` with the keys of ``lines`` set to their values there, or removed where a line is a
    key alone."""
    keys = {line.split()[0] for line in lines}
    kept = [line for line in text.splitlines() if not (line.split()[:1] and line.split()[0] in keys)]
    return "\n".join([*kept, *(line for line in lines if len(line.split()) > 1), ""])


def link_commands(directory: Path) -> None:
    """A ``build`` in ``directory`` with the three commands, through a symbolic link as scripts have
    it."""
    commands = directory / "commands"
    commands.mkdir()
    for name in ("tp", "lat", "pdv"):
        file = commands / f"siitperf-{name}"
        file.write_text(f"#!{sys.executable}\nfrom dutperf.siitperf.commands import {name}\n\n{name}()\n")
        file.chmod(0o755)
    (directory / "build").symlink_to(commands)
