# SPDX-License-Identifier: Apache-2.0
"""What a command says of a defect."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from dutperf.invocation import command_line


def sentence_of_fault(error: BaseException) -> str:
    """What a command says of a defect; the traceback is in a file of its own, or else on standard error."""
    text = "".join([f"{command_line(sys.argv)}\n", *traceback.format_exception(error)])
    try:
        descriptor, name = tempfile.mkstemp(prefix="dutperf-fault-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        where = f"its traceback is in {name}"
    except OSError:
        print(text, file=sys.stderr)
        where = "its traceback is above"
    said = " ".join(str(error).split())
    return (
        f"a fault of dutperf or of this machine, not a result of the DUT: {type(error).__name__}: {said}; {where}:"
        " please report it"
    )
