# SPDX-License-Identifier: Apache-2.0
"""Signals that the kernel sends for what happens to a file or a pipe do not end the engine in the middle of a trial."""

from __future__ import annotations

import signal
import subprocess

import pytest

from dutperf.engine.client import EngineCommand


@pytest.mark.parametrize("number", [signal.SIGXFSZ, signal.SIGPIPE])
def test_the_engine_survives(number: signal.Signals) -> None:
    engine = subprocess.Popen(EngineCommand.find().argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write('{"id": 1, "method": "hello"}\n')
    engine.stdin.flush()
    assert '"hello"' in engine.stdout.readline()
    engine.send_signal(number)
    engine.stdin.close()
    assert engine.wait(20) == 0
