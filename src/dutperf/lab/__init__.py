# SPDX-License-Identifier: Apache-2.0
"""Labs: DUTs in network namespaces of this machine, made for a run and removed with it.

Traffic stays inside: a lab's cables connect its own namespaces, and nothing touches the host's
interfaces, addresses or settings. A new lab is one file with a :class:`~dutperf.lab.definition.Lab`,
and its name in ``_MODULES``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from dutperf.lab.definition import Lab, LabOptions
from dutperf.lab.errors import LabError
from dutperf.lab.site import Site, exclusively, records, remove_leftovers
from dutperf.machine.signals import defer_signals, exit_on_signals
from dutperf.spelling import hint

__all__ = ["LabError", "LabInfo", "bring_up", "check", "describe", "down", "list_labs", "standing", "up"]

_MODULES = (
    "tayga_siit",
    "tayga_nat64",
    "tayga_464xlat",
    "encapsulation",
    "clients",
    "jool",
    "kernel_router",
    "kernel_vm",
    "linux_bridge",
    "open_vswitch",
    "testpmd",
    "nft_nat44",
    "nptv6",
    "dns64",
    "reference",
    "reference_ends",
    "loopback",
)
"""Imported when a lab is asked for: a measurement of somebody's own DUT needs none."""


@cache
def _labs() -> dict[str, Lab[Any]]:
    modules = [import_module(f"{__name__}.{name}") for name in _MODULES]
    labs = [lab for module in modules for lab in (module.LABS if hasattr(module, "LABS") else (module.LAB,))]
    return {lab.name: lab for lab in labs}


@dataclass(frozen=True)
class LabInfo:
    """Description of a lab; ``options`` maps each option's name to its help."""

    name: str
    summary: str
    options: Mapping[str, str]


def list_labs() -> list[LabInfo]:
    """All labs, whether or not this machine can run them."""
    return [describe(name) for name in _labs()]


def describe(name: str) -> LabInfo:
    """The lab ``name``. Raises LabError if there is no lab of that name."""
    lab = _lab(name)
    return LabInfo(lab.name, lab.summary, _described(lab.options))


def check(name: str, options: Mapping[str, str]) -> None:
    """Raises LabError if there is no lab of that name, or it does not have these options."""
    _lab(name).parse(options)


@contextlib.contextmanager
def bring_up(name: str, options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Build the lab ``name`` and yield the configuration to measure it with, in the form of the
    configuration file.

    It is taken down on every exit, also half-way through the building. If the process is killed, the next lab command
    takes it down. Raises LabError: unknown lab or option, no root, a missing program, or an error of the kernel."""
    with exit_on_signals():
        construction = _Construction.of(name, options, stays=False)
        try:
            yield construction.finish()
        finally:
            construction.undo()


def up(name: str, options: Mapping[str, str]) -> Path:
    """Build the lab ``name`` to stay until :func:`down`; returns the file with its configuration."""
    with exit_on_signals():
        construction = _Construction.of(name, options, stays=True)
        try:
            return construction.hand_over()
        except BaseException:
            construction.undo()
            raise


def standing(name: str) -> list[Path]:
    """The files with the configurations of the labs ``name`` that :func:`up` built."""
    return [record.configuration_file for record in records() if record.lab == name and record.owner is None]


def down(name: str) -> bool:
    """Take down every lab ``name`` that :func:`up` built; returns whether there was one. Raises LabError: unknown lab,
    or no root."""
    _lab(name).check_root()
    remove_leftovers()
    with exclusively(), defer_signals():
        staying = [record for record in records() if record.lab == name and record.owner is None]
        for record in staying:
            record.take_down()
    return bool(staying)


@dataclass(frozen=True)
class _Construction:
    """A lab under construction."""

    site: Site
    build: Callable[[Site], dict[str, Any]]

    @classmethod
    def of(cls, name: str, options: Mapping[str, str], *, stays: bool) -> _Construction:
        """Check everything before building anything, and remove leftovers of killed runs."""
        lab = _lab(name)
        parsed = lab.parse(options)
        lab.check_machine()
        remove_leftovers()
        return cls(Site.draft(name, stays=stays), lambda site: lab.made(site, parsed))

    def finish(self) -> dict[str, Any]:
        self.site.prepare()
        configuration = self.build(self.site)
        return {**configuration, "engine": {**self.site.engine_settings(), **configuration["engine"]}}

    def hand_over(self) -> Path:
        """Build, write the configuration to a file and leave the lab to :func:`down`."""
        configuration = self.finish()
        file = self.site.record.configuration_file
        file.write_text(yaml.safe_dump(configuration, sort_keys=False))
        self.site.disown()
        return file

    def undo(self) -> None:
        with defer_signals():
            self.site.take_down()


def _lab(name: str) -> Lab[Any]:
    if name not in _labs():
        raise LabError(f"no lab is called {name}; {hint(name, _labs())}")
    return _labs()[name]


def _described(options: type[LabOptions]) -> dict[str, str]:
    return {name: field.description or "" for name, field in options.model_fields.items()}
