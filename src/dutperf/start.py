# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands. From here on, whatever signal comes and whatever alphabet the terminal has, a command
ends with a status of its own and no traceback."""

from __future__ import annotations

import sys

from dutperf.exit_status import FAULT, end_at_signals

TYPE_CHECKING = False  # importing typing takes longer than what may be interrupted here
if TYPE_CHECKING:
    from typing import NoReturn


def dutperf() -> NoReturn:
    _run("dutperf.cli", "main")


def siitperf_tp() -> NoReturn:
    _run("dutperf.siitperf.commands", "tp")


def siitperf_lat() -> NoReturn:
    _run("dutperf.siitperf.commands", "lat")


def siitperf_pdv() -> NoReturn:
    _run("dutperf.siitperf.commands", "pdv")


def dns64perf() -> NoReturn:
    _run("dutperf.dns64perf.commands", "dns64perf")


def _run(module: str, name: str) -> NoReturn:
    end_at_signals()
    _print_whatever_the_alphabet()
    try:
        from importlib import import_module

        main = getattr(import_module(module), name)
    except Exception as error:
        from dutperf.fault import sentence_of_fault

        print(f"dutperf: {sentence_of_fault(error)}", file=sys.stderr)
        sys.exit(FAULT)
    sys.exit(main())


def _print_whatever_the_alphabet() -> None:
    """A character that the terminal's encoding lacks is shown as ``?``: no result may be lost for a µ in a heading."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by whoever started the command
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # those of a process can
