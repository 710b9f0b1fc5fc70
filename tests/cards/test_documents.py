# SPDX-License-Identifier: Apache-2.0
"""docs/cards.md as a person follows it: every command of its shell blocks, in their order, in an
emulated machine that has the host's files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import documents
from cards.conftest import Guests
from cards.image import ENGINE
from cards.machine import Guest, Machine
from dutperf.exit_status import INVALID
from undisturbed import until

pytestmark = pytest.mark.cards

PAGE = "docs/cards.md"
COMMAND_S = 240
"""Seconds that a command may take on the emulated processor."""


def test_every_command_of_the_page_runs(guests: Guests) -> None:
    guests.stop()
    guest = guests.of(Machine("e1000e", huge_pages=0, shows_host=True))
    guest.run("modprobe e1000e; enter-host", COMMAND_S)
    _write_configurations(guest)
    for block in documents.blocks(PAGE):
        for command in block.commands() if block.language == "sh" else []:
            _run(guest, command, str(block))
    guests.stop()


def _run(guest: Guest, command: str, where: str) -> None:
    """A measurement that says itself that it was disturbed is repeated; on a busy machine it is enough."""
    status, output = guest.shell.status(in_project(command), COMMAND_S)
    if status == INVALID:
        until(
            lambda: guest.shell.status(in_project(command), COMMAND_S),
            lambda ended: ended[0] == 0,
            lambda ended: f"{where}: {command}: {ended[1]}",
            if_busy=lambda ended: ended[0] == INVALID,
        )
        return
    assert status == 0, f"{where}: {command}: {output}"


def _write_configurations(guest: Guest) -> None:
    """Files that the page lets its reader write: a YAML block, named in the sentence before it."""
    text = (documents.ROOT / PAGE).read_text(encoding="utf-8")
    found = re.findall(r"write `(\w+\.yaml)`[^`]*```yaml\n(.*?)```", text, re.DOTALL)
    assert found
    for name, contents in found:
        guest.run(in_project(f"echo {shlex.quote(contents)} > {name}"))


def in_project(command: str) -> str:
    """``command`` as root in the project's directory, with the engine that was built for the
    emulated processor."""
    environment = f"HOME=/root PATH={shlex.quote('/usr/sbin:/usr/bin:/sbin:/bin')} DUTPERF_ENGINE={ENGINE}"
    inner = f"cd {shlex.quote(str(Path(documents.ROOT)))} && {command}"
    return f"env -i {environment} chroot /host sh -c {shlex.quote(inner)}"
