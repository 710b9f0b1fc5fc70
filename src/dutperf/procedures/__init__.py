# SPDX-License-Identifier: Apache-2.0
"""Measurement procedures, one file per clause. :mod:`dutperf.procedures.base` has their common part,
:mod:`dutperf.procedures.bench` the interface to the campaign that runs them.

A new procedure is one file with a :class:`~dutperf.procedures.definition.Definition` called ``PROCEDURE``; ``make
format`` adds it to the generated lists. Each is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module

from dutperf.procedures.definition import Definition
from dutperf.procedures.names import NAMES as NAMES
from dutperf.setup.conditions import Conditions


def module_of(name: str) -> str:
    return f"{__name__}.{name.replace('-', '_')}"


def find(name: str) -> Definition:
    """The procedure of that name. Raises KeyError: there is no such procedure."""
    if name not in NAMES:
        raise KeyError(name)
    found: Definition = import_module(module_of(name)).PROCEDURE
    return found


def model_of(name: str) -> str:
    """The class of the conditions of the procedure of that name: ``FrameLoss`` of ``frame-loss``."""
    return "".join(map(str.capitalize, name.split("-")))


def named_by(model: str) -> str | None:
    """The name of the procedure whose conditions are of that class; None: there is none."""
    return next((name for name in NAMES if model_of(name) == model), None)


def of(conditions: Conditions) -> Definition | None:
    """The procedure that these conditions are of; None: of none."""
    modules = (import_module(one.__module__) for one in type(conditions).__mro__ if issubclass(one, Conditions))
    return next((module.PROCEDURE for module in modules if hasattr(module, "PROCEDURE")), None)


def every() -> tuple[Definition, ...]:
    """All procedures, in the order in which they are shown."""
    return tuple(map(find, NAMES))
