# SPDX-License-Identifier: Apache-2.0
"""Measurement procedures, one file per clause. :mod:`dutperf.procedures.base` has their common part,
:mod:`dutperf.procedures.bench` the interface to the campaign that runs them.

A new procedure is one file with a :class:`~dutperf.procedures.definition.Definition` called ``PROCEDURE``, and its name
in ``NAMES``; ``make format`` adds it to the list of commands. Each is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module

from dutperf.procedures.definition import Definition

NAMES = (
    "throughput",
    "frame-loss",
    "back-to-back",
    "latency",
    "pdv",
    "ipdv",
    "recovery",
    "reset",
    "ramp",
    "load-latency",
    "soak",
    "traffic",
    "establishment-rate",
    "table-capacity",
    "teardown-rate",
    "address-capacity",
    "address-learning-rate",
    "address-ageing",
    "broadcast",
)


def module_of(name: str) -> str:
    """The module of the procedure of that name."""
    return f"{__name__}.{name.replace('-', '_')}"


def find(name: str) -> Definition:
    """The procedure of that name.

    Raises:
        KeyError: there is no such procedure.
    """
    if name not in NAMES:
        raise KeyError(name)
    found: Definition = import_module(module_of(name)).PROCEDURE
    return found


def every() -> tuple[Definition, ...]:
    """All procedures, in the order in which they are shown."""
    return tuple(map(find, NAMES))
