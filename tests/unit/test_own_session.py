# SPDX-License-Identifier: Apache-2.0
"""The tests' command runs in a session of its own, and Ctrl-C still ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OWN_SESSION = Path(__file__).parents[2] / "scripts/own_session"
WAITING = """
import os, signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler)
try:
    print(os.getsid(0), flush=True)  # in here: the signal may come at once
    time.sleep(60)
except KeyboardInterrupt:
    raise SystemExit(3) from None
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command(number: signal.Signals) -> None:
    with subprocess.Popen([OWN_SESSION, sys.executable, "-c", WAITING], stdout=subprocess.PIPE) as script:
        assert script.stdout is not None
        assert int(script.stdout.readline()) != os.getsid(0)
        script.send_signal(number)
        assert script.wait() == 3


@pytest.mark.parametrize(("ends", "status"), [("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_its_exit_status_is_the_commands(ends: str, status: int) -> None:
    assert subprocess.run([OWN_SESSION, "bash", "-c", ends], check=False).returncode == status
