# SPDX-License-Identifier: Apache-2.0
"""Definition of a lab: name, options, required programs, and a function that builds the DUT and returns
the configuration to measure it with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dutperf import errors, installation, invocation
from dutperf.lab import netns
from dutperf.lab.errors import LabError
from dutperf.model.frame_size import ETHERNET_OVERHEAD

if TYPE_CHECKING:
    from dutperf.lab.site import Site

PROGRAMS = {"ip": "iproute2", "ethtool": "ethtool", "nft": "nftables"}
"""Programs that every lab needs, each with its Debian package."""


COMMAND_S = 60.0
"""Time limit of a command that does not wait itself, in seconds."""


class LabOptions(BaseModel):
    """Options of every lab."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    max_frame_size: Annotated[int, Field(ge=1518, le=9216, description="longest frame, in bytes incl. FCS")] = 1522

    @property
    def mtu(self) -> int:
        """MTU in bytes for frames of ``max_frame_size``."""
        return self.max_frame_size - ETHERNET_OVERHEAD


class ResetOptions(LabOptions):
    """Options of a lab for ``dutperf reset``."""

    reset_s: Annotated[float, Field(gt=0, le=3600, description="duration of a reset, in s")] = 0.5

    def limit_commands(self, duts: Iterable[Mapping[str, Any]]) -> None:
        """Give the commands of each DUT of a configuration time for a reset."""
        for commands in filter(None, (dut.get("commands") for dut in duts)):
            commands["time_limit_s"] = COMMAND_S + self.reset_s


EndOption = Annotated[
    Literal["both", "left", "right"],
    Field(description="which DUTs there are: both, or one alone, and the tester is the other end"),
]
"""Option of labs with two DUTs in a row (RFC 8219 section 4.2)."""


class EndOptions(ResetOptions):
    """Two DUTs or one."""

    end: EndOption = "both"


Cores = Annotated[
    int, Field(ge=1, le=64, description="cores of the DUT; a hash of addresses and ports selects one for a flow")
]
"""Option of labs whose DUT may have several."""
OptionsT = TypeVar("OptionsT", bound=LabOptions)


@dataclass(frozen=True)
class Lab(Generic[OptionsT]):
    """One kind of DUT.

    ``programs`` maps each required program to its Debian package. ``build`` sets the DUT up inside the
    site's namespaces and returns the tester's configuration without ``engine.netns``. The site takes
    everything down.
    """

    name: str
    summary: str
    options: type[OptionsT]
    programs: Mapping[str, str]
    build: Callable[[Site, OptionsT], dict[str, Any]]
    needs_ipv6: bool = False
    """Whether the DUT uses this kernel's IPv6."""

    def parse(self, options: Mapping[str, str]) -> OptionsT:
        """``options``, checked and typed. Raises LabError: an option is unknown or out of range; the message names
        it."""
        try:
            return self.options.model_validate(dict(options))
        except ValidationError as error:
            raise LabError(f"lab {self.name}: {self._explanation(error)}") from None

    def made(self, site: Site, options: OptionsT) -> dict[str, Any]:
        """What ``build`` returns, with the time limits of its commands."""
        configuration = self.build(site, options)
        if isinstance(options, ResetOptions):
            dut = configuration["dut"]
            options.limit_commands([dut] if isinstance(dut, dict) else dut)
        return configuration

    def check_root(self) -> None:
        """Raises LabError, with a remedy, if this user cannot have network namespaces."""
        if os.geteuid() != 0:
            raise LabError(f"lab {self.name} needs root for its network namespaces: {invocation.as_root()}")

    def check_machine(self) -> None:
        """Raises LabError, with a remedy, if this machine or user cannot run the lab."""
        self.check_root()
        for program, package in {**PROGRAMS, **self.programs}.items():
            if shutil.which(program) is None:
                raise LabError(
                    f"lab {self.name} needs {program}, which is not installed: {installation.package(package)}"
                )

        if self.needs_ipv6 and not netns.has_ipv6():
            raise LabError(
                f"lab {self.name} needs IPv6, which this kernel has not: boot without ipv6.disable=1, or choose a lab"
                " whose DUT is another program or a virtual machine (dutperf lab list)"
            )

    def _explanation(self, error: ValidationError) -> str:
        first = errors.first(error)
        option = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            return f"unknown option {option}; there are {', '.join(self.options.model_fields)}"
        message = first["msg"]
        return f"option {option}={first['input']}: {message[0].lower()}{message[1:]}" if option else message
