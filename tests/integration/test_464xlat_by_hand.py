# SPDX-License-Identifier: Apache-2.0
"""The configurations of docs/transition.md measure a CLAT and a PLAT in namespaces made by hand (464xlat_by_hand.sh),
both in a row and each alone. Root only."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents import blocks
from dutperf.engine.factory import engine_on
from dutperf.model import Direction
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from plans import make_trial
from undisturbed import valid

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("tayga") is None, reason="needs Debian's tayga"),
]
BY_HAND = Path(__file__).with_name("464xlat_by_hand.sh")
FILES = {"both": "464xlat.yaml", "clat": "clat.yaml", "plat": "plat.yaml"}
SMALLEST = {"both": 64, "clat": 84, "plat": 84}


def shown(file: str) -> str:
    """A file as the page has it."""
    [text] = [block.text for block in blocks("docs/transition.md") if re.match(rf"# {re.escape(file)}\b", block.text)]
    return text


@contextmanager
def made(which: str, directory: Path) -> Iterator[str]:
    """The tester's namespace beside the DUTs."""
    name = f"hand-{secrets.token_hex(3)}"
    (directory / "tayga.conf").write_text(shown("/etc/tayga.conf"))
    try:
        subprocess.run([BY_HAND, "up", name, which, directory / "tayga.conf"], check=True)
        yield name
    finally:
        subprocess.run([BY_HAND, "down", name], check=True)


@pytest.mark.parametrize("which", FILES)
def test_the_pages_configuration_measures_it(which: str, tmp_path: Path) -> None:
    mapping: dict[str, Any] = yaml.safe_load(shown(FILES[which]))
    chosen = SingleTrial(duration_s=1, drain_s=0.3)
    with made(which, tmp_path) as name:
        setup = configuration.parse({"engine": {"netns": name}, **mapping}, FILES[which])
        with engine_on(setup, SMALLEST[which]) as tester:
            result = valid(lambda: tester.run(make_trial(setup, chosen, SMALLEST[which], 1000, 1)))
    assert {direction: one.received for direction, one in result.directions().items()} == {
        Direction.FORWARD: 1000,
        Direction.REVERSE: 1000,
    }
