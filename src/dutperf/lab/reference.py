# SPDX-License-Identifier: Apache-2.0
"""Labs with the reference DUT: a router, translator, NAT and DNS64 server with configured behaviour, whose counters
are the ground truth for the tester.

Addresses and mappings are those of the other labs, so that results can be compared. Limits of its
truth: docs/decisions/0007-reference-dut.md.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from functools import partial
from ipaddress import IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from dutperf import installation
from dutperf.lab.addresses import (
    LEFT,
    NAT64_PREFIX,
    POOL_SIZE,
    RIGHT,
    RIGHT_BEHIND_NAT64,
    RIGHT_SEEN_FROM_LEFT,
    RIGHT_SEEN_FROM_LEFT_NET,
    Side,
    outside_pool,
    routed_sides,
    siit_mappings,
    translated_sides,
)
from dutperf.lab.definition import Lab, LabOptions
from dutperf.lab.errors import LabError
from dutperf.lab.memif import Ports, memory_ports
from dutperf.lab.netns import DUT_PORTS, TESTER_PORTS
from dutperf.lab.refdut import (
    PROGRAM,
    VARIABLE,
    Dns64Properties,
    Milliseconds,
    NatProperties,
    Properties,
    RefDut,
    RefDutError,
)
from dutperf.lab.site import Site, await_start
from dutperf.machine.programs import find_program
from dutperf.model.questions import PREFIX_LENGTHS
from dutperf.version import __version__

Kind = Literal["siit", "ipv4", "ipv6", "nat44", "nat64", "dns64"]
Seconds = Annotated[float, Field(ge=0, le=3600)]
DUTS: dict[Kind, str] = {
    "siit": "SIIT gateway",
    "ipv4": "IPv4 router",
    "ipv6": "IPv6 router",
    "nat44": "NAT44",
    "nat64": "stateful NAT64",
    "dns64": "DNS64 server",
}
KERNEL_PORTS = Ports(*(f"af_packet:{name}" for name in DUT_PORTS))
PropertiesT = TypeVar("PropertiesT", bound=Properties)


class ReferenceOptions(LabOptions, Properties):
    """Properties, and single events: their times count from the first frame that the DUT forwards."""

    link: Annotated[
        Literal["veth", "memif"],
        Field(description="veth: cables and packet sockets; memif: shared memory, without the kernel"),
    ] = "veth"
    buffers: Annotated[
        int,
        Field(ge=1023, le=1_048_575, description="maximum frames of each direction inside, queued or delayed"),
    ] = 16383
    stall_ms: Annotated[
        Milliseconds,
        Field(description="duration of a single stall, in ms: no service, frames wait in the queue"),
    ] = 0
    stall_at_s: Annotated[Seconds, Field(description="start of the stall, in s after the first frame")] = 0
    reset_s: Annotated[
        Seconds, Field(description="duration of a single reset, in s: no forwarding, frames inside are lost")
    ] = 0
    reset_at_s: Annotated[Seconds, Field(description="start of the reset, in s after the first frame")] = 0

    @model_validator(mode="after")
    def _each_has_an_effect(self) -> Self:
        for option, of in (
            ("stall_at_s", "stall_ms"),
            ("reset_at_s", "reset_s"),
            ("jitter_ms", "jitter"),
            ("jitter", "jitter_ms"),
            ("extra_delay_ms", "extra_delay_every"),
            ("extra_delay_every", "extra_delay_ms"),
            ("extra_delay", "extra_delay_ms"),
            ("flow_cache", "flow_miss_us"),
        ):
            if option in self.model_fields_set and not self.model_fields_set & {of, of.removesuffix("_every")}:
                raise ValueError(f"option {option} needs {of}")
        return self

    def properties(self) -> Properties:
        return self._of(Properties)

    def chosen(self) -> dict[str, Any]:
        """Those that somebody chose, for results."""
        return self.model_dump(exclude_defaults=True)

    def stateful(self) -> dict[str, Any]:
        """The section ``stateful`` of the tester's configuration, if there is one."""
        return {}

    def _of(self, kind: type[PropertiesT]) -> PropertiesT:
        return kind(**{name: getattr(self, name) for name in kind.model_fields})


class NatOptions(ReferenceOptions, NatProperties):
    """Properties of a NAT too, and its outside addresses."""

    pool_addresses: Annotated[
        int, Field(ge=1, le=POOL_SIZE, description="outside addresses of the NAT, from 198.19.254.129 on")
    ] = 1
    first_port: Annotated[int, Field(ge=1, le=65_535, description="lowest outside port")] = 1024
    last_port: Annotated[int, Field(ge=1, le=65_535, description="highest outside port")] = 65_535

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.first_port > self.last_port:
            raise ValueError(f"option first_port is above last_port, {self.last_port}")
        if "evict_count" in self.model_fields_set and self.when_full != "evict":
            raise ValueError("option evict_count needs when_full=evict")
        if "establishment_queue" in self.model_fields_set and not self.establishment_cps:
            raise ValueError("option establishment_queue needs establishment_cps")
        return self

    def properties(self) -> Properties:
        return self._of(NatProperties)

    def stateful(self) -> dict[str, Any]:
        """What the tester has to know of the connections."""
        return {"stateful": {"timeout_s": self.timeout_s}} if self.timeout_s else {}

    def outside(self) -> dict[str, Any]:
        """The outside endpoints, as parameters of the request ``open``."""
        return {
            "pool": outside_pool(self.pool_addresses),
            "first_port": self.first_port,
            "last_port": self.last_port,
        }


def _translation_prefix(text: str) -> str:
    try:
        prefix = IPv6Network(text)
    except ValueError as error:
        raise ValueError(f"is not an IPv6 prefix ({error})") from None
    if prefix.prefixlen not in PREFIX_LENGTHS:
        raise ValueError("must be 32, 40, 48, 56, 64 or 96 bits long (RFC 6052)")
    return str(prefix)


class Dns64Options(ReferenceOptions, Dns64Properties):
    """Properties of a DNS64 server too, its prefix, and how it asks the tester's server."""

    prefix: Annotated[
        str,
        AfterValidator(_translation_prefix),
        Field(description="prefix of the synthesised addresses (RFC 6052)"),
    ] = NAT64_PREFIX
    server_version: Annotated[
        Literal["4", "6"], Field(description="IP version in which it asks the server, the tester's right side")
    ] = "4"

    def properties(self) -> Properties:
        return self._of(Dns64Properties)

    def server(self) -> str:
        return RIGHT.tester4 if self.server_version == "4" else RIGHT.tester6


def build(kind: Kind, site: Site, options: ReferenceOptions) -> dict[str, Any]:
    tester_ports, dut_ports = connected(site, options, overhead=0)
    run(site, open_request(kind, dut_ports, options), options.properties(), options)
    left, right = sides_of_tester(kind)
    outside = {"outside": outside_pool(options.pool_addresses)} if isinstance(options, NatOptions) else {}
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "left": {"port": tester_ports.left, **left},
        "right": {"port": tester_ports.right, **right},
        **options.stateful(),
        **({"dns64": {"server": LEFT.dut6, "prefix": options.prefix}} if isinstance(options, Dns64Options) else {}),
        "dut": {**identity(f"reference {DUTS[kind]}", site, options.chosen()), **outside},
    }


def connected(site: Site, options: ReferenceOptions, overhead: int) -> tuple[Ports, Ports]:
    """Create the namespaces of the tester and of one DUT, and the link between them for frames that are longer by
    ``overhead``; returns the ports of both."""
    if options.link == "veth":
        site.add_program_dut(options.mtu + overhead)
        return Ports(*TESTER_PORTS), KERNEL_PORTS
    site.add_memory_dut()
    tester, dut = (memory_ports(site, role, options.max_frame_size + overhead) for role in ("client", "server"))
    return tester, dut


def run(site: Site, request: Mapping[str, Any], properties: Properties | None, events: ReferenceOptions | None) -> None:
    """Start the DUT, open it by ``request``, and give it ``properties`` and single ``events``, as far as it has some.
    Raises LabError: it did not start, or rejects a request."""
    dut = start(site)
    try:
        dut.open(request)
        if properties is not None:
            dut.configure(properties)
        if events is not None and events.stall_ms:
            dut.stall(events.stall_ms / 1e3, events.stall_at_s)
        if events is not None and events.reset_s:
            dut.reset(events.reset_s, events.reset_at_s)
    except RefDutError as error:
        raise LabError(f"lab {site.record.lab}: {error}") from None


def start(site: Site) -> RefDut:
    """Start the process; returns when it listens. Raises LabError: it is not installed, or did not start."""
    program = find_program(PROGRAM, VARIABLE)
    if program is None or shutil.which(program) is None:
        raise LabError(f"there is no {PROGRAM}: {installation.engine()}")
    path, log = control_socket(site), site.directory / "refdut.log"
    await_start(site.start_daemon([program, str(path)], log), log, PROGRAM, path.is_socket)
    return RefDut(path)


def control_socket(site: Site) -> Path:
    return site.directory / "refdut.socket"


def open_request(kind: Kind, ports: Ports, options: ReferenceOptions) -> dict[str, Any]:
    ipv4 = kind not in ("siit", "nat64", "dns64")
    routes = {"to_left": routes_to(LEFT, ipv4=ipv4), "to_right": routes_to(RIGHT)} if kind != "dns64" else NO_ROUTES
    sides = {"left": dut_side(ports.left, LEFT, ipv4=ipv4), "right": dut_side(ports.right, RIGHT)}
    size = {"max_frame_size": options.max_frame_size, "buffers": options.buffers}
    return {**sides, **routes, **translators(kind, options), **size}


def translators(kind: Kind, options: ReferenceOptions) -> dict[str, Any]:
    if isinstance(options, Dns64Options):
        return {"dns64": {"server": options.server(), "prefix": options.prefix}}
    if isinstance(options, NatOptions):
        return {"nat": options.outside() | ({"prefix": NAT64_PREFIX} if kind == "nat64" else {})}
    return {"translator": translation()} if kind == "siit" else {}


def dut_side(port: str, side: Side, *, ipv4: bool = True) -> dict[str, Any]:
    """The DUT's host on one side; its gateway is the tester."""
    four = {"ipv4": side.dut4, "gateway4": side.tester4} if ipv4 else {}
    return {"port": port, **four, "ipv6": side.dut6, "gateway6": side.tester6}


def routes_to(side: Side, *, ipv4: bool = True) -> dict[str, Any]:
    return {"routes4": [side.net4] if ipv4 else [], "routes6": [side.net6]}


NO_ROUTES: dict[str, Any] = {"to_left": {}, "to_right": {}}
"""Of a DUT that forwards nothing."""


def translation() -> dict[str, Any]:
    """Parameters of the translation (RFC 7757)."""
    mappings = [{"ipv4": ipv4, "ipv6": ipv6} for ipv4, ipv6 in siit_mappings()]
    return {"routes4": [LEFT.net4], "routes6": [RIGHT_SEEN_FROM_LEFT_NET], "mappings": mappings}


def sides_of_tester(kind: Kind) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tester's configuration of its left and right side, without the ports."""
    seen_as = {"siit": (LEFT.tester4, RIGHT_SEEN_FROM_LEFT), "nat64": (outside_pool(1)[0], RIGHT_BEHIND_NAT64)}
    if kind in seen_as:
        left, right = seen_as[kind]
        return translated_sides(left, right)
    if kind == "dns64":
        # clients have no IPv4; the server has both, whichever the DUT uses
        return {"version": 6, **LEFT.ipv6}, {"version": 6, **RIGHT.ipv4, **RIGHT.ipv6}
    return routed_sides(6 if kind == "ipv6" else 4)


def identity(name: str, site: Site, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What the results say about a DUT with these properties; ``control``, the socket for its counters, is not part of
    the results."""
    about = {
        "name": name,
        "version": __version__,
        "kernel": platform.release(),
        "cores": [site.dut_core],
        "control": str(control_socket(site)),
    }
    return about | ({"properties": dict(chosen)} if chosen else {})


def _lab(kind: Kind, options: type[ReferenceOptions] = ReferenceOptions) -> Lab[ReferenceOptions]:
    summary = f"the reference {DUTS[kind]}: its properties are set by options, its counters are the truth"
    return Lab(name=f"refdut-{kind}", summary=summary, options=options, programs={}, build=partial(build, kind))


LABS = (
    _lab("siit"),
    _lab("ipv4"),
    _lab("ipv6"),
    _lab("nat44", NatOptions),
    _lab("nat64", NatOptions),
    _lab("dns64", Dns64Options),
)
