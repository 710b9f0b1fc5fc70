# SPDX-License-Identifier: Apache-2.0
"""What a command that has ended printed."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
from typing import Any


def printed(done: CompletedProcess[str]) -> Any:
    """Its JSON document. A command that printed none says why on standard error: the failed test shows that."""
    assert done.stdout, f"exit status {done.returncode}, nothing printed; standard error:\n{done.stderr}"
    return json.loads(done.stdout)
