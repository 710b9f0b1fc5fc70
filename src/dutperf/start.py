# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands. A signal while their modules are imported, which takes a part of a second, ends them
with the status of an interruption: no lab, engine or journal is open yet."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

from dutperf.exit_status import FAULT, signals_end


def dutperf() -> NoReturn:
    """The command ``dutperf``."""
    _run("dutperf.cli", "main")


def siitperf_tp() -> NoReturn:
    """``siitperf-tp``."""
    _run("dutperf.siitperf.commands", "tp")


def siitperf_lat() -> NoReturn:
    """``siitperf-lat``."""
    _run("dutperf.siitperf.commands", "lat")


def siitperf_pdv() -> NoReturn:
    """``siitperf-pdv``."""
    _run("dutperf.siitperf.commands", "pdv")


def _run(module: str, name: str) -> NoReturn:
    try:
        with signals_end():
            main = getattr(import_module(module), name)
    except Exception as error:
        from dutperf.fault import sentence_of_fault

        print(f"dutperf: {sentence_of_fault(error)}", file=sys.stderr)
        sys.exit(FAULT)
    sys.exit(main())
