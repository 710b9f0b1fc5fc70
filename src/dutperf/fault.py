# SPDX-License-Identifier: Apache-2.0
"""What a command says of a defect."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from dutperf.errors import DutperfError
from dutperf.exit_status import FAULT, NOT_NOW, READER_GONE, WRONG_USAGE, let_go_of_output, status_of_system
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


def status_of(error: DutperfError) -> int:
    """Exit status of an error that is no full disk."""
    if error.is_temporary:
        return NOT_NOW
    return FAULT if error.is_fault else WRONG_USAGE


def unexpected(error: Exception) -> tuple[str, int]:
    """What a program says of an error that is none of its own, and its exit status. To nobody where nobody reads its
    output any more."""
    if isinstance(error, BrokenPipeError):
        let_go_of_output()
        return "nobody reads the output", READER_GONE
    known = status_of_system(error) if isinstance(error, OSError) else None
    if not isinstance(error, OSError) or known is None:
        return sentence_of_fault(error), FAULT
    return f"cannot write {error.filename or 'the output'}: {error.strerror}", known
