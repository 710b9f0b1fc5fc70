# SPDX-License-Identifier: Apache-2.0
"""dutperf: measures network devices by RFC 8219, 2544, 5180, 4814 and 9004, and proves that each
measurement is valid.

The public interface is ``__all__`` (docs/api.md), and the conditions of each procedure, as
``dutperf.Throughput``. Names are imported at first use: a command for a single trial does not wait
for the libraries that draw reports.
"""

from __future__ import annotations

import os.path
import sys

from dutperf.version import __version__

TYPE_CHECKING = False  # a command imports this before it can heed a signal: nothing that takes time
if TYPE_CHECKING:
    from typing import Any

    from dutperf.api import Bench, bench, conditions_of, measure, open_result, procedure_names, resume, trial
    from dutperf.api.models import *  # noqa: F403
    from dutperf.api.results import Results
    from dutperf.errors import DutperfError
    from dutperf.journal import JournalError, WriteError
    from dutperf.lab import LabError, list_labs
    from dutperf.model import TrialResult, Verdict
    from dutperf.results.measured import Measured
    from dutperf.run.campaign import PlanError, Status
    from dutperf.setup.conditions import Conditions, Rate, SingleTrial
    from dutperf.setup.configuration import ConfigError
    from dutperf.tester import TesterError
    from dutperf.traffic.replayed import Replaying

__all__ = [
    "Bench",
    "Conditions",
    "ConfigError",
    "DutperfError",
    "JournalError",
    "LabError",
    "Measured",
    "PlanError",
    "Rate",
    "Replaying",
    "Results",
    "SingleTrial",
    "Status",
    "TesterError",
    "TrialResult",
    "Verdict",
    "WriteError",
    "__version__",
    "bench",
    "conditions_of",
    "list_labs",
    "measure",
    "open_result",
    "procedure_names",
    "resume",
    "trial",
]

# A package for a system that has no or too old a version of some libraries brings them along.
_BUNDLED = os.path.join(os.path.dirname(__file__), "bundled")  # noqa: PTH118, PTH120 (pathlib takes time)
if os.path.isdir(_BUNDLED):  # noqa: PTH112
    sys.path.insert(0, _BUNDLED)

_MODULES = {
    "dutperf.errors": ("DutperfError",),
    "dutperf.api": ("Bench", "bench", "conditions_of", "measure", "open_result", "procedure_names", "resume", "trial"),
    "dutperf.run.campaign": ("PlanError", "Status"),
    "dutperf.setup.conditions": ("Conditions", "Rate", "SingleTrial"),
    "dutperf.setup.configuration": ("ConfigError",),
    "dutperf.journal": ("JournalError", "WriteError"),
    "dutperf.lab": ("LabError", "list_labs"),
    "dutperf.model": ("TrialResult", "Verdict"),
    "dutperf.results.measured": ("Measured",),
    "dutperf.api.results": ("Results",),
    "dutperf.tester": ("TesterError",),
    "dutperf.traffic.replayed": ("Replaying",),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    if name[:1].isupper():
        from dutperf import procedures

        if (procedure := procedures.named_by(name)) is not None:
            return procedures.find(procedure).conditions
    raise AttributeError(f"module 'dutperf' has no attribute {name!r}")


def __dir__() -> list[str]:
    from dutperf import procedures

    return sorted([*globals(), *__all__, *map(procedures.model_of, procedures.NAMES)])
