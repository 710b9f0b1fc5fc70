# SPDX-License-Identifier: Apache-2.0
"""The test setup and the trial of a command: the port and the addresses are those of the configuration file's left
side, everything else is of the arguments."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.dns64perf.arguments import NS, ArgumentError, QueryTest
from dutperf.model import (
    TRIAL_NUMBERS,
    AddressNames,
    Bursts,
    Questions,
    Slices,
    SourcePorts,
    Stamping,
    Stream,
    Trial,
)
from dutperf.setup import configuration, yaml_text
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.traffic.questions import check

FILE = Path("dns64perf.yaml")
ZONE = "dns64perf.test"


@dataclass(frozen=True)
class Planned:
    setup: Setup
    trial: Trial
    arguments: QueryTest
    remarks: tuple[str, ...]


def plan(arguments: QueryTest, queries_file: Path) -> Planned:
    """Of the arguments and the configuration file in the working directory. The engine writes the times of the queries
    to ``queries_file``. Raises ArgumentError: they cannot be used."""
    setup = _setup(arguments)
    return Planned(setup, _trial(arguments, setup, queries_file), arguments, tuple(_remarks(arguments)))


def _setup(arguments: QueryTest) -> Setup:
    try:
        text = FILE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ArgumentError("", f"cannot read {FILE}, the configuration of the client's port: {reason}") from None
    try:
        mapping, lines = yaml_text.read(text)
        setup = configuration.parse(_with_arguments(mapping, arguments), str(FILE), lines)
        check(setup)
    except yaml_text.YamlError as error:
        raise ArgumentError("", str(ConfigError(str(error), error.key, origin=str(FILE), line=error.line))) from None
    except ConfigError as error:
        raise ArgumentError("", str(error)) from None
    if setup.engine.command:
        raise ArgumentError("", f"{FILE}: engine.command: the engine has to run here, where its file of times is read")
    if any(dut.commands is not None and (dut.commands.set_up or dut.commands.tear_down) for dut in setup.duts()):
        raise ArgumentError("", f"{FILE}: dut.commands: the DUT is not set up here, as by dns64perf++: leave them out")
    return setup


def _with_arguments(mapping: Any, arguments: QueryTest) -> Any:
    """The file as the configuration of a DUT that asks another name server, for the names of the subnet."""
    given = (mapping.get("dns64") or {}) if isinstance(mapping, Mapping) else None
    if not isinstance(given, Mapping):
        return mapping  # which is refused
    chosen = {"server": str(arguments.server), "addresses": str(arguments.subnet)}
    return {**mapping, "dns64": {"zone": ZONE, **given, **chosen}}


def _trial(arguments: QueryTest, setup: Setup, queries_file: Path) -> Trial:
    """Its number is a new one, and so are the source ports: no late answer of an earlier command counts."""
    number, timeout_ns = secrets.randbelow(TRIAL_NUMBERS), round(arguments.timeout_s * NS)
    rate_fps = round(arguments.exact_qps)
    return Trial(
        trial=number,
        seed=secrets.randbelow(2**53),
        duration_ns=arguments.requests * NS // rate_fps,
        drain_ns=timeout_ns,
        stamping=Stamping.EVERY,
        frame_timeout_ns=timeout_ns,
        queries_file=str(queries_file),
        forward=Stream(
            rate_fps=rate_fps,
            pattern=Bursts(frames=arguments.burst) if arguments.burst > 1 else None,
            questions=_questions(arguments, setup, number),
        ),
    )


def _questions(arguments: QueryTest, setup: Setup, number: int) -> Questions:
    assert setup.left is not None, "the configuration is checked"
    assert setup.left.ipv6 is not None, "the configuration is checked"
    assert setup.dns64 is not None, "the configuration is checked"
    slices = Slices(count=arguments.threads, burst=arguments.burst, names=arguments.slice_size)
    return Questions(
        source=setup.left.ipv6.ip,
        destination=arguments.server,
        destination_port=arguments.port,
        source_ports=SourcePorts.of_trial(number),
        zone=setup.dns64.zone,
        prefix=setup.dns64.prefix,
        addresses=AddressNames(network=arguments.subnet, slices=slices if arguments.threads > 1 else None),
    )


def _remarks(arguments: QueryTest) -> list[str]:
    rate_fps, exact = round(arguments.exact_qps), arguments.exact_qps
    if rate_fps == exact:
        return []
    return [f"Warning: the rate is {rate_fps:,} queries/s, the nearest whole number to {exact:,.3f}."]
