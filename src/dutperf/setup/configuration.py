# SPDX-License-Identifier: Apache-2.0
"""The configuration file: how the tester is connected to the DUT (RFC 8219 4.1). It is read from YAML
and checked once, here.

An unknown key, or one without an effect, is an error: a measurement with a silently ignored setting
is worthless. Every error is one sentence that names the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from dutperf import errors
from dutperf.errors import DutperfError
from dutperf.frames import Stack
from dutperf.model import (
    PORT_NAME,
    ConnectionOrder,
    Direction,
    Networks,
    ResponderOrder,
    Value,
    VaryingAddress,
    VaryingField,
    to_json,
)
from dutperf.model.value import Port16
from dutperf.setup import host_address, path_texts, tunnel, yaml_text
from dutperf.setup.dns64 import Dns64Setup
from dutperf.setup.planned_stream import MOST_STREAMS, PlannedStream
from dutperf.setup.tunnel import Tunnel
from dutperf.setup.yaml_text import Location, Text, YamlError, one_or_several, path_of
from dutperf.spelling import count_of, hint

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface

MEMORY_PORTS = ("ring", "null")
"""Ports in memory, without a cable: both sides must have the same."""
_INTERFACE = r"[^\s/:,]{1,15}"
_PORT_SPECS = (
    r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?:,\S+)?",
    rf"af_xdp:{_INTERFACE}",
    rf"af_packet:{_INTERFACE}",
    r"(?:virtio_user|vhost_user|memif):/[^\s,]{1,106}(?:,[^\s,=]+=[^\s,=]*)*",
    r"ring",
    r"null",
    r"vdev:\S+",
    _INTERFACE_ALONE := r"[A-Za-z0-9_.-]{1,15}",
)


_HAS_LOCATIONS = "has_locations"
"""Whether ports are locations of an OTG server, which may be any text: of the context in which values are checked."""


class ConfigError(DutperfError):
    """The configuration, or an option, cannot be used. ``key`` is the key's path (``left.ipv6``) or
    the option of a command (``--out``)."""

    def __init__(self, message: str, key: str, *, origin: str = "", line: int | None = None) -> None:
        place = origin + (f", line {line}" if origin and line else "")
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.message = message
        self.key = key
        self.origin = origin


class ParameterError(ConfigError):
    """A condition, or the source of the setup, cannot be used. ``key`` is the parameter's name in the
    Python interface (``frame_sizes``); empty: several contradict each other. The command line shows
    its option instead, for names in backticks in the message too (:mod:`dutperf.cli.options`)."""


def is_port(text: str) -> bool:
    return any(re.fullmatch(spec, text) for spec in _PORT_SPECS)


def is_interface(port: str) -> bool:
    """Whether a port is named by its interface alone: the engine chooses how it uses it."""
    return port not in MEMORY_PORTS and re.fullmatch(_INTERFACE_ALONE, port) is not None


def _port_spec(text: object, info: ValidationInfo) -> object:
    if (info.context or {}).get(_HAS_LOCATIONS):
        if not isinstance(text, str) or not re.fullmatch(r"\S{1,200}", text):
            raise ValueError("is not a location of a port of the OTG server (engine.otg)")
        return text
    if text is None:
        raise ValueError('is empty; the port null is written "null", with quotes')
    if not isinstance(text, str) or not is_port(text):
        raise ValueError(
            "is not a port: give a PCI address (0000:01:00.0), an interface's name, af_xdp:INTERFACE,"
            " af_packet:INTERFACE, virtio_user:/SOCKET, vhost_user:/SOCKET, memif:/SOCKET, ring, null or vdev:DEVARGS"
        )
    return text


def unicast_mac(text: object) -> str:
    """``text``, checked, in lower case. Raises ValueError: it is no address of one station."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        raise ValueError("is not a MAC address (aa:bb:cc:dd:ee:ff)")
    if int(text[:2], 16) & 1 or text == "00:00:00:00:00:00":
        raise ValueError("is not a unicast MAC address")
    return text.lower()


def _own_address(text: object) -> object:
    if not isinstance(text, str) or "/" not in text:
        raise ValueError("needs a prefix length, as in 198.18.0.2/24 or 2001:2::2/64")
    return text


def _network(text: object) -> object:
    try:
        network = ip_network(text if isinstance(text, str) else "")
    except ValueError as error:
        raise ValueError(
            f"is neither an address nor a network, such as 198.19.0.3 or 198.19.0.0/16 ({error})"
        ) from None
    if network.is_multicast or network.is_unspecified or network.is_loopback:
        raise ValueError("has addresses that no host on a link has")
    return network


def _list_or_auto(cores: object) -> object:
    if cores != "auto" and (not isinstance(cores, list | tuple) or not cores):
        raise ValueError("is neither auto nor a list of cores")
    return None if cores == "auto" else cores


MAX_QUEUES = 16
"""Receive queues of a port, and transmit queues."""
Offload = Literal["receive_timestamps", "send_at", "rate_limit"]
"""Hardware offloads that a port may have (protocol/README.md)."""


def _each_once(named: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    if named is not None and (twice := [one for one in named if named.count(one) > 1]):
        raise ValueError(f"names {twice[0]} twice")
    return named


Offloads = Annotated[tuple[Offload, ...], AfterValidator(_each_once)]
PortSpec = Annotated[str, BeforeValidator(_port_spec)]
Mac = Annotated[str, BeforeValidator(unicast_mac)]
Core = Annotated[int, Field(ge=0)]
Cores = Annotated[tuple[Core, ...], AfterValidator(_each_once)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]


Namespaces = Annotated[
    tuple[str, ...],
    BeforeValidator(one_or_several),
    Field(min_length=1),
    PlainSerializer(lambda names: names[0] if len(names) == 1 else list(names)),
]
"""Names of network namespaces; one alone may be given, and is written, without a list."""


LINK_TIMEOUT_S = 10.0
"""Autonegotiation of a copper link takes some seconds."""
FlowControl = Literal["off", "receive", "transmit", "full"]
"""Ethernet flow control (IEEE 802.3 annex 31B): who may stop a sender."""


ANY_CERTIFICATE = "any"
"""In place of a file: no certificate is verified."""


def _otg_address(text: object) -> object:
    address = urlsplit(text) if isinstance(text, str) else None
    if address is None or address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError("is not the address of an OTG server, such as https://192.0.2.1:8443")
    return text


def without_secrets(address: str) -> str:
    """The address of an OTG server without its path, which may hold a token."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class EngineSettings(Value):
    """Where and how the engine runs. ``command`` is a prefix of its command line: ``[sudo, -n]``,
    ``[ssh, tester-host]``."""

    netns: Annotated[str, StringConstraints(pattern=r"^[^\s/]+$")] | None = None
    cores: Annotated[Cores | None, BeforeValidator(_list_or_auto)] = None
    """Cores for the hot loops, in order of preference; None: the engine chooses."""
    dut_netns: Namespaces | None = None
    """Network namespaces of DUTs on this machine: their processes may use the DUTs' cores."""
    dut_cores: Cores = ()
    """Cores that a DUT on the same machine uses."""
    queues: Annotated[int, Field(ge=1, le=MAX_QUEUES)] = 1
    """Receive and transmit queues of each port. A direction has as many senders and receivers, on
    separate cores as long as there are enough."""
    offloads: Offloads = ()
    """Hardware offloads to use; a port without one of them is an error."""
    flow_control: Annotated[FlowControl, BeforeValidator(lambda mode: "off" if mode is False else mode)] = "off"
    """Flow control of the ports; YAML reads a bare ``off`` as false."""
    link_timeout_s: Annotated[float, Field(ge=0, le=600)] = LINK_TIMEOUT_S
    """How long to wait for the links when the ports are opened, and before a trial."""
    memory: Literal["auto", "huge_pages", "no_huge_pages"] = "auto"
    command: tuple[str, ...] = ()
    otg: Annotated[str, BeforeValidator(_otg_address), PlainSerializer(without_secrets)] | None = None
    """Address of a server of the Open Traffic Generator API, which sends and counts in place of the engine. Results
    do not have its path."""
    otg_certificate: Annotated[str, Field(min_length=1)] | None = None
    """A file with its certificate or that of its authority, or ``any``; None: verified by the system's authorities,
    or not at all on this machine."""


class Side(Value):
    """One of the tester's ports: its addresses and where its frames go. Without gateways a cable, or a
    DUT without addresses of its own, connects the ports directly."""

    port: PortSpec
    version: Literal[4, 6]
    """IP version of this side's foreground traffic."""
    ipv4: Annotated[IPv4Interface, BeforeValidator(_own_address)] | None = None
    ipv6: Annotated[IPv6Interface, BeforeValidator(_own_address)] | None = None
    gateway4: IPv4Address | None = None
    """The DUT's address on this cable; its MAC address is resolved by ARP."""
    gateway6: IPv6Address | None = None
    gateway_mac: Mac | None = None
    vlans: Annotated[tuple[Annotated[int, Field(ge=1, le=4094)], ...], Field(min_length=1, max_length=64)] | None = None
    """VLANs in which the DUT has its addresses on this cable: ARP and Neighbour Discovery ask for its MAC
    address in each of them (IEEE 802.1Q). None: without a tag."""
    mac: Mac | None = None
    seen_as: Annotated[Address, BeforeValidator(lambda text: ip_address(text))] | None = None
    """How the other sides address this one through the DUT, where that translates: between IP versions, or
    within one (static NAT)."""
    receive_ring: Annotated[int, Field(ge=8, le=65536)] | None = None
    """Size of the receive ring, in frames."""
    frame: Annotated[str, Field(min_length=1)] | None = None
    """Headers of the frames that this side sends, as of ``--frame``, where the sides' frames differ: a
    DUT that adds or removes tags. None: from the conditions."""
    tunnel: Tunnel | None = None
    """Outer headers of the frames that this side sends, where the DUT decapsulates them and encapsulates those to it;
    None: it does not."""
    varying_address: VaryingAddress | None = None
    """16 bits of this side's address that vary: in the source address of frames that it sends, in the
    destination address of frames to it (RFC 4814 4.4)."""
    answers_for: Annotated[tuple[Network, ...], Field(max_length=64)] = ()
    """Addresses and networks for which this side answers ARP and Neighbour Discovery, beside its own and those
    of its frames: other next hops of the DUT."""
    source_port: VaryingField | None = None
    """Source port of frames that this side sends; None: from the conditions."""
    destination_port: VaryingField | None = None
    networks: Networks | None = None
    """Destination networks on this side, for frames to it (RFC 2544 section 12); None: from the
    conditions."""

    def address(self, version: int) -> Interface | None:
        """The tester's own address of an IP version."""
        return self.ipv4 if version == 4 else self.ipv6

    def gateway(self, version: int) -> Address | None:
        """The DUT's address of an IP version."""
        return self.gateway4 if version == 4 else self.gateway6

    @property
    def link_version(self) -> Literal[4, 6]:
        """IP version of this side's test frames on the cable."""
        return self.version if self.tunnel is None else tunnel.version_of(self.tunnel)

    @property
    def tunnel_headers(self) -> Stack | None:
        own = self.address(self.link_version)
        return None if self.tunnel is None or own is None else tunnel.stack_of(self.tunnel, own)

    @property
    def tunnel_overhead(self) -> int:
        """Bytes by which the test frames are longer on this side than they are measured."""
        return 0 if self.tunnel is None else tunnel.overhead_of(self.tunnel)

    @property
    def has_gateway(self) -> bool:
        """Whether this side has a DUT, not a cable to the other port."""
        return bool(self.gateway4 or self.gateway6 or self.gateway_mac)


class SharedPort(Side):
    """A port on which the tester has several hosts. No configuration has one."""

    hosts: Annotated[tuple[Side, ...], Field(max_length=255)] = ()
    """Further ones, each as if it were alone on the port."""


NO_PORT = Side.model_construct(
    port="vdev:net_null_unused,no-rx=1",
    version=6,
    ipv6=IPv6Interface("100::1/64"),
    gateway_mac="02:00:00:00:00:00",
)
"""In place of the right port, where the tester has none: a device of DPDK on which nothing arrives. Its address is
one that no host has (RFC 6666)."""


def _command(command: object) -> object:
    words = [command] if isinstance(command, str) else command
    if (
        not isinstance(words, list | tuple)
        or not words
        or not all(isinstance(word, str) and word.strip() for word in words)
    ):
        raise ValueError("is not a command: give a command line for the shell, or a list of words")
    return command


Command = Annotated[str | tuple[str, ...], BeforeValidator(_command)]
"""A command line for the shell, or a program and its arguments."""


class DutCommands(Value):
    """Commands for the DUT, which run on this machine, each for at most ``time_limit_s`` seconds; see
    :mod:`dutperf.dut`."""

    set_up: Command | None = None
    """Before the tester's ports are opened."""
    tear_down: Command | None = None
    """At the end, also after an error or a signal."""
    state: Command | None = None
    """Before the first and after the last trial of each search; its output goes to the journal."""
    reset: Command | None = None
    """During each trial of ``dutperf reset``. It may end before the DUT forwards again."""
    losses: Command | None = None
    """Before and after each trial: prints the DUT's loss counters, in lines of direction, cause and
    number of frames (``forward queue 12``)."""
    filters: Command | None = None
    """Before and after a measurement under the modifier ``filters``: installs as many filters as the
    environment variable DUTPERF_FILTERS says, 0 afterwards; its output goes to the results."""
    clear_connections: Command | None = None
    """Before a stateful trial (RFC 9693): deletes all connections of the DUT, and ends when they are deleted.
    Its duration is the tear-down time, unless it prints a line with that time in seconds
    (``deletion_s 0.25``)."""
    count_connections: Command | None = None
    """Prints the number of connections; the first whole number of its output counts. Further lines of a
    name and a number (``early_drop 12``) are statistics of the DUT."""
    clear_addresses: Command | None = None
    """Before a trial of a switch's address table (RFC 2889 sections 5.7, 5.8): makes the DUT forget all
    addresses that it has learned. Without it the trials wait until they have aged."""
    time_limit_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0

    def names(self) -> list[str]:
        return [name for name in COMMANDS if getattr(self, name) is not None]


COMMANDS = tuple(name for name in DutCommands.model_fields if name != "time_limit_s")


class Dut(BaseModel):
    """What the results say about the DUT, and its commands; further keys are copied to the results."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    name: Text | None = None
    version: Text | None = None
    commands: DutCommands | None = None
    control: Text | None = None
    """Control socket of a reference DUT, from which its counters are read."""

    def identity(self) -> dict[str, Any]:
        """What the results say about the DUT, as JSON types, without its commands and control socket."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"commands", "control"})


def _tag_of(given: object) -> str:
    return "row" if isinstance(given, list | tuple) else "one"


class LinkBetween(Value):
    """The link between two DUTs in a row, which the tester does not see."""

    mbps: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Its speed in Mbit/s; None: that of the tester's links."""
    overhead: Annotated[int, Field(ge=-40, le=1_000)] = 0
    """Bytes by which test frames are longer there than at the tester's ports: 20 where IPv4 becomes IPv6."""
    mtu: Annotated[int, Field(ge=68, le=65_535)] | None = None
    """Of the DUTs' ports there, in bytes; None: enough for every frame."""
    passed: Command | None = None
    """Prints how many frames have been sent on it so far, in a line of direction and number for each direction:
    ``forward 12``. So it says on which side of it frames were lost."""


def _several(duts: tuple[Dut, ...]) -> tuple[Dut, ...]:
    if len(duts) < 2:
        raise ValueError("is a list of several DUTs; give a DUT alone as a mapping, without a list")
    return duts


_SeveralDuts = Annotated[tuple[Dut, ...], AfterValidator(_several)]
OneOrRow = Annotated[Annotated[Dut, Tag("one")] | Annotated[_SeveralDuts, Tag("row")], Discriminator(_tag_of)]
"""The DUT, or several in a row from left to right."""


def _range(given: object) -> object:
    """A range of ports: a list of two, or one port."""
    if isinstance(given, int) and not isinstance(given, bool):
        return (given, given)
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError("is not a range of ports, such as [1024, 65535]")
    return given


def _ascending(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError("has its first port above its last")
    return ports


PortRange = Annotated[tuple[Port16, Port16], BeforeValidator(_range), AfterValidator(_ascending)]


PortName = Annotated[str, StringConstraints(pattern=f"^{PORT_NAME}$")]


class Stateful(Value):
    """The connections through a stateful DUT (RFC 9693 sections 4.1, 4.4)."""

    initiator: PortName | None = None
    """The port that opens connections; None: where the first path begins. The one that it sends to is the Responder."""
    source_ports: PortRange | None = None
    """Of the Initiator's frames. Connections are the combinations of source and destination ports, and of the
    ``varying_address`` of the sides. None: from the number of connections."""
    destination_ports: PortRange | None = None
    order: ConnectionOrder = ConnectionOrder.RANDOM
    """In which order the combinations become connections."""
    responder: ResponderOrder = ResponderOrder.RANDOM
    """To which connections the Responder's frames belong."""
    timeout_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """After so long without a frame the DUT deletes a connection; None: unknown."""


class Setup(Value):
    """A checked configuration."""

    engine: EngineSettings = EngineSettings()
    left: Side | None = None
    right: Side | None = None
    ports: Annotated[dict[PortName, Side], Field(min_length=2, max_length=path_texts.MOST_PORTS)] | None = None
    """More ports than two, by their names, instead of left and right."""
    paths: Annotated[tuple[str, ...], BeforeValidator(one_or_several), Field(min_length=1)] | None = None
    """Which ports send to which others (:mod:`dutperf.setup.path_texts`)."""
    streams: tuple[PlannedStream, ...] = ()
    """Streams that share each direction's rate, and others with rates of their own; without any that share it, what
    is measured has the frames of the conditions."""
    stateful: Stateful = Stateful()
    """For measurements with connections."""
    dut: OneOrRow = Dut()
    dns64: Dns64Setup | None = None
    """The DUT as a DNS64 server, for measurements of one."""
    between: Annotated[tuple[LinkBetween, ...], BeforeValidator(one_or_several)] = ()
    """The links between several DUTs, from left to right; empty: as the tester's, with frames of the same length."""
    media_mbps: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Speed of the links in Mbit/s, for the maximum frame rates of RFC 8219 appendix A."""

    def sides(self) -> dict[str, Side]:
        """The ports by name: left first, or in the order of the configuration."""
        if self.ports is not None:
            return dict(self.ports)
        assert self.left is not None, "the configuration is checked"
        return {"left": self.left, "right": self.right or NO_PORT}

    @property
    def other_name_server(self) -> bool:
        """Whether the DUT asks another name server than the tester's, which then has no right port."""
        return self.dns64 is not None and self.dns64.addresses is not None

    def duts(self) -> tuple[Dut, ...]:
        """The DUT, or those in a row from left to right."""
        return (self.dut,) if isinstance(self.dut, Dut) else self.dut

    def path_ends(self) -> dict[Direction, tuple[str, str]]:
        """The sending and the receiving port of each path, by their names."""
        if self.ports is not None:
            return path_texts.parse(self.paths or (), tuple(self.ports))
        return {Direction.FORWARD: ("left", "right"), Direction.REVERSE: ("right", "left")}

    def ends(self, direction: Direction) -> tuple[Side, Side]:
        """The sending and the receiving side of a path."""
        sides, (sender, receiver) = self.sides(), self.path_ends()[direction]
        return sides[sender], sides[receiver]

    @property
    def initiator_path(self) -> Direction:
        """The path of the frames that open connections (RFC 9693)."""
        initiator = self.stateful.initiator
        return next(path for path, (sender, _) in self.path_ends().items() if initiator in (None, sender))

    @property
    def responder_path(self) -> Direction | None:
        """The path of the replies; None: none leads back."""
        return next((path for path in self.path_ends() if path.leads_back(self.initiator_path)), None)

    def has_connections(self, path: Direction) -> bool:
        """Whether frames of a path may belong to connections, if there are any."""
        return path is self.initiator_path or path is self.responder_path

    def sharing(self, direction: Direction) -> tuple[PlannedStream, ...]:
        """The streams that share the rate of a path."""
        return tuple(one for one in self.streams if one.rate is None and one.sends_on(direction))

    @property
    def has_sharing(self) -> bool:
        """Whether any streams share the rate of a path."""
        return any(one.rate is None for one in self.streams)

    @property
    def sends_by_itself(self) -> bool:
        """Whether all streams have rates of their own: they may be sent without other frames."""
        return bool(self.streams) and not self.has_sharing

    @property
    def longest_of_streams(self) -> int:
        """The longest frame of streams with sizes of their own, in bytes incl. FCS; 0: there are none."""
        return max((size for one in self.streams if one.sizes for size in one.size_mix().sizes), default=0)

    @property
    def tunnel_overhead(self) -> int:
        """Bytes by which the test frames are longer on one side at most."""
        return max(side.tunnel_overhead for side in self.sides().values())

    def other_streams(self) -> dict[Direction, PlannedStream]:
        """Those with rates of their own, on each path that they send on."""
        others = [one for one in self.streams if one.rate is not None]
        return {path.with_stream(one.name): one for one in others for path in self.path_ends() if one.sends_on(path)}

    @property
    def is_looped_back(self) -> bool:
        """Whether the tester's client asks its own name server."""
        own = None if self.right is None else self.right.ipv6
        return self.dns64 is not None and own is not None and own.ip == self.dns64.server

    def active(self, chosen: tuple[Direction, ...]) -> tuple[Direction, ...]:
        """The paths that send: those ``chosen`` of left and right, all of named ports."""
        return chosen if self.ports is None else tuple(self.path_ends())

    def key_of(self, name: str) -> str:
        """The key of a port in the configuration."""
        return name if self.ports is None else f"ports.{name}"


def load(path: Path) -> Setup:
    """Read and check a configuration file. Raises ConfigError: it cannot be read, is not valid YAML, or has an invalid
    value."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ParameterError(f"cannot read {path}: {reason}", "config") from None
    return parse_yaml(text, origin=str(path))


def place_of(key: str, path: Path) -> tuple[str, int | None] | None:
    """The configuration file and the line of a key, for an error that shows later than the file is read: of the engine,
    or of what is measured. None: the file does not have such keys."""
    if key.partition(".")[0] not in Setup.model_fields:
        return None
    try:
        _, lines = yaml_text.read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it has changed, or was never a file
        return None
    known = {path_of(location): line for location, line in lines.items()}
    while key and key not in known:
        key = key.rpartition(".")[0]
    return str(path), known.get(key)


def parse_yaml(text: str, origin: str) -> Setup:
    """Check a configuration in YAML; ``origin`` names its source in errors."""
    try:
        mapping, lines = yaml_text.read(text)
    except YamlError as error:
        raise ConfigError(str(error), error.key, origin=origin, line=error.line) from None
    return parse(mapping, origin, lines)


def parse(mapping: object, origin: str, lines: Mapping[Location, int] | None = None) -> Setup:
    """Check a configuration; ``lines`` has the line of each key."""
    try:
        if not isinstance(mapping, Mapping):
            raise _Invalid((), "a configuration is a mapping with the keys " + ", ".join(Setup.model_fields))
        for location in _truth_values(mapping):
            raise _Invalid(location, yaml_text.TRUTH_VALUE)
        engine = mapping.get("engine")
        has_locations = isinstance(engine, Mapping) and engine.get("otg") is not None
        setup = Setup.model_validate(mapping, context={_HAS_LOCATIONS: has_locations})
        _check(setup)
    except ValidationError as error:
        details = errors.first(error)
        details["loc"] = tuple(_as_given(details["loc"], mapping, is_missing=details["type"] == "missing"))
        names = mapping.get("ports") if isinstance(mapping, Mapping) else None
        location, message = details["loc"], _sentence(details, list(names) if isinstance(names, Mapping) else ())
    except _Invalid as error:
        location, message = error.location, error.message
    else:
        return setup
    raise _error(location, _stream_at(location, mapping) + message, origin, lines)


def _as_given(location: Location, given: object, *, is_missing: bool) -> Iterator[str | int]:
    """The keys of a location that a configuration has: without what pydantic adds of a union and of values that are
    made of a text."""
    for number, part in enumerate(location, 1):
        if isinstance(given, Mapping) and part in given:
            given = given[part]
        elif isinstance(given, list | tuple) and isinstance(part, int):
            given = given[part]
        elif not (is_missing and number == len(location)):
            continue
        yield part


def _stream_at(location: Location, mapping: object) -> str:
    """Begins a sentence about a stream, whose key has only its number; empty: it is about something else."""
    match location, mapping:
        case ("streams", int(number), *within), {"streams": Sequence() as streams} if within != ["name"]:
            name = streams[number].get("name") if isinstance(streams[number], Mapping) else None
            return f"the stream {name}: " if name and isinstance(name, str) else ""
    return ""


def _truth_values(given: object, location: Location = ()) -> Iterator[Location]:
    """Where a configuration has true or false, which no key takes: a number made of it would be 0 or 1, and a text
    ``False``. The DUT may have further keys."""
    if isinstance(given, bool):
        of_dut = [part for part in location[1:] if isinstance(part, str)]
        if location[:1] != ("dut",) or not of_dut or of_dut[0] in Dut.model_fields:
            yield location
    elif isinstance(given, Mapping):
        for key, value in given.items():
            if ((*location, key), value) != (("engine", "flow_control"), False):
                yield from _truth_values(value, (*location, str(key)))
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given):
            yield from _truth_values(value, (*location, number))


def offloads(names: Iterable[str], key: str) -> Offloads:
    """Hardware offloads by their names. Raises ConfigError: an unknown offload, or a duplicate; ``key`` names the
    source."""
    try:
        return _OFFLOADS.validate_python(tuple(names))
    except ValidationError as error:
        raise ConfigError(_sentence(errors.first(error)), key) from None


_OFFLOADS: TypeAdapter[Offloads] = TypeAdapter(Offloads)


def as_json(setup: Setup) -> dict[str, Any]:
    """The configuration as JSON types, for a journal, without members that were not set.

    The DUT's commands are left out too: they may hold secrets, and no command from a results file
    may run as root.
    """
    members = to_json(setup)
    for described in [members["dut"]] if isinstance(setup.dut, Dut) else members["dut"]:
        described.pop("commands", None)
    return members


def commands_of(setup: Setup) -> list[str]:
    """Names of the DUT's commands in the configuration, after those of the DUTs where there are several."""
    named = {"": setup.dut} if isinstance(setup.dut, Dut) else {f"{one.name}: ": one for one in setup.dut}
    return [
        f"{dut}{command}"
        for dut, one in named.items()
        if one.commands is not None
        for command in sorted(one.commands.names())
    ]


class _Invalid(Exception):
    def __init__(self, location: Location, message: str) -> None:
        self.location = location
        self.message = message


def _error(location: Location, message: str, origin: str, lines: Mapping[Location, int] | None) -> ConfigError:
    known = [location[:length] for length in range(len(location), 0, -1) if location[:length] in (lines or {})]
    line = (lines or {}).get(known[0]) if known else None
    return ConfigError(message, path_of(location), origin=origin, line=line)


# --- messages for validation errors ---------------------------------------------------------------

_MOST_PLACES = 3
"""Those of a key that a hint names."""


def _sentence(details: ErrorDetails, names: Sequence[str] = ()) -> str:
    """``names``: of the ports, if they have other names than left and right."""
    kind, location = details["type"], details["loc"]
    if kind == "extra_forbidden":
        return _unknown_key(location, names)
    if kind == "missing":
        return "is missing"
    if kind == "tuple_type":
        given = details["input"]
        return "should be a list" + (f", as in [{given}]" if isinstance(given, str | int | float) else "")
    if kind == "model_type":
        return f"should be a mapping, with keys of {', '.join(_keys_at(location))}"
    reason = (
        details["msg"]
        .replace("Input should be", "should be")
        .replace("Input is", "is")
        .replace("Tuple should have", "should have")
    )
    return f"{reason} (it is {details['input']!r})" if isinstance(details["input"], str | int | float) else reason


def _unknown_key(location: Location, names: Sequence[str]) -> str:
    key = str(location[-1])
    side = dict.fromkeys(("left", "right"), ("ports", names[0])) if names else {}
    places = ((*side.get(str(place), (place,)), *within) for place, *within in _places_of(key, Setup))
    elsewhere = list(dict.fromkeys(path_of(place) for place in places))
    if 0 < len(elsewhere) <= _MOST_PLACES:
        return f"unknown key; did you mean {' or '.join(elsewhere)}?"
    return f"unknown key; {hint(key, _keys_at(location[:-1]))}"


def _places_of(key: str, model: type[BaseModel]) -> Iterator[Location]:
    """Where a key may stand in a configuration with ``left`` and ``right``, and one stream."""
    for name, field in model.model_fields.items():
        if name == key:
            yield (name,)
        place = (name, 0) if name == "streams" else (name,)
        for kind in _models_in(field.annotation) if name not in ("ports", "between") else ():
            yield from ((*place, *rest) for rest in _places_of(key, kind))


def _keys_at(location: Location) -> Iterator[str]:
    """The keys that are allowed in the mapping at ``location``."""
    model: type[BaseModel] = Setup
    named = False
    for part in location:
        if isinstance(part, int) or named:
            named = False
            continue  # an entry of a list or of the ports, whose model is known
        model = next(_models_in(model.model_fields[str(part)].annotation))
        named = part == "ports"
    yield from model.model_fields


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type consists of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


# --- checks of several keys -----------------------------------------------------------------------


def _check(setup: Setup) -> None:
    _check_paths(setup)
    within = () if setup.ports is None else ("ports",)
    for name, side in setup.sides().items():
        _check_addresses((*within, name), side)
        _check_gateways((*within, name), side)
    _check_dns64(setup)
    _check_ports(setup, within)
    _check_streams(setup)
    _check_between(setup, within)
    for name, side in setup.sides().items():
        senders = path_texts.senders_to(name, setup.path_ends(), setup.sides())
        if side.seen_as is not None or setup.dns64 is None:  # a DNS64 server translates no packets
            _check_seen_as((*within, name), side, senders)
    _check_initiator(setup)
    _check_duts(setup)
    _check_otg(setup, within)


def _check_initiator(setup: Setup) -> None:
    initiator, senders = setup.stateful.initiator, [sender for sender, _ in setup.path_ends().values()]
    if initiator is not None and initiator not in senders:
        others = ", ".join(dict.fromkeys(senders))
        raise _Invalid(("stateful", "initiator"), f"is {initiator}, where no path begins: give one of {others}")


_OF_OTG = frozenset({"otg", "otg_certificate", "link_timeout_s"})
"""Settings that go with an OTG server."""
_ONLY_OF_ENGINE = ("answers_for", "receive_ring", "varying_address")
"""Settings of a port that its devices do not have."""


def _check_otg(setup: Setup, within: Location) -> None:
    """With an OTG server nothing is set that it does not have."""
    if setup.engine.otg is None:
        if setup.engine.otg_certificate is not None:
            raise _Invalid(("engine", "otg_certificate"), "has no effect without engine.otg")
        return
    unset = EngineSettings()
    others = [name for name, value in setup.engine if name not in _OF_OTG and value != getattr(unset, name)]
    if others:
        raise _Invalid(("engine", others[0]), "has no effect beside engine.otg: the server has its own ports and cores")
    if setup.dns64 is not None:
        raise _Invalid(("dns64",), "is not possible with engine.otg: an OTG server asks and answers no DNS queries")
    for name, side in setup.sides().items():
        _check_otg_port((*within, name), side)


def _check_otg_port(location: Location, side: Side) -> None:
    for key in _ONLY_OF_ENGINE:
        if getattr(side, key):
            raise _Invalid((*location, key), "is not possible with engine.otg: its devices have one address")
    if len(side.vlans or ()) > 1:
        raise _Invalid((*location, "vlans"), "are several; with engine.otg a port has one VLAN")
    if side.gateway_mac is not None and side.gateway(side.link_version) is None:
        raise _Invalid(
            (*location, f"gateway{side.link_version}"),
            "is missing: with engine.otg a port needs it beside gateway_mac, to answer for its address",
        )


def _check_dns64(setup: Setup) -> None:
    """The client is at the left port and asks over IPv6 (RFC 8219 section 9)."""
    if setup.dns64 is None:
        return
    if setup.left is None:
        raise _Invalid(("dns64",), "does not go with named ports: client and name server are at two without names")
    if setup.other_name_server and setup.engine.offloads:
        raise _Invalid(
            ("engine", "offloads"), "do not go with dns64.addresses: the tester has no port for them at right"
        )
    if setup.left.ipv6 is None:
        raise _Invalid(("left", "ipv6"), "is missing: a DNS64 server is asked over IPv6")
    if setup.left.gateway6 is None and setup.left.gateway_mac is None and not setup.is_looped_back:
        raise _Invalid(
            ("left", "gateway6"),
            "is missing: it is the address of dns64.server if that is on the link, else a router's",
        )
    if setup.dns64.server == setup.left.ipv6.ip:
        raise _Invalid(("dns64", "server"), f"{setup.dns64.server} is the tester's own address (left.ipv6)")


def _check_links(setup: Setup, links: int) -> None:
    if setup.between and not links:
        raise _Invalid(("between",), "is about links between several DUTs: dut is then a list of them")
    if setup.between and len(setup.between) != links:
        named = count_of(len(setup.between), "link")
        raise _Invalid(("between",), f"has {named}; between {links + 1} DUTs are {links}, from left to right")
    if setup.ports and any(link.passed is not None for link in setup.between):
        raise _Invalid(("between",), "has passed, which says forward and reverse: it does not go with named ports")


def _check_duts(setup: Setup) -> None:
    _check_links(setup, len(setup.duts()) - 1)
    one_alone = isinstance(setup.dut, Dut)
    seen: set[str] = set()
    for number, dut in enumerate(setup.duts()):
        location: Location = ("dut",) if one_alone else ("dut", number)
        for key in dut.model_extra or ():
            if key in ("command", *COMMANDS) and key != "filters":  # which results name
                meant = ("commands",) if key == "command" else ("commands", key)
                raise _Invalid((*location, key), f"unknown key; did you mean {path_of((*location, *meant))}?")
        if dut.commands is not None and not dut.commands.names():
            raise _Invalid(
                (*location, "commands"), f"names no command; there are {', '.join(COMMANDS[:-1])} and {COMMANDS[-1]}"
            )
        if one_alone:
            continue
        if not dut.name:
            raise _Invalid((*location, "name"), "is missing: each of several DUTs needs a name of its own")
        if dut.name in seen:
            raise _Invalid((*location, "name"), f"{dut.name} is already the name of another DUT")
        seen.add(dut.name)


def _check_paths(setup: Setup) -> None:
    """Ports are left and right, or have names and paths."""
    sides = {"left": setup.left, "right": setup.right}
    if setup.ports is not None:
        if given := [name for name, side in sides.items() if side is not None]:
            raise _Invalid((given[0],), "does not go with ports, which have names of their own")
        return _check_named(setup, tuple(setup.ports))
    if setup.other_name_server and setup.right is not None:
        raise _Invalid(("right",), "has no effect: the DUT asks another name server (dns64.addresses); leave it out")
    missing = [name for name, side in sides.items() if side is None]
    if missing and not (missing == ["right"] and setup.other_name_server):
        raise _Invalid((missing[0],), "is missing")
    if setup.paths is not None:
        raise _Invalid(("paths",), "is for named ports: left and right have the paths forward and reverse")
    return None


def _check_named(setup: Setup, names: tuple[str, ...]) -> None:
    if setup.paths is None:
        raise _Invalid(("paths",), "is missing: say which ports send to which others, as in [a->b, b<->c] or mesh")
    try:
        ends = path_texts.parse(setup.paths, names)
    except ValueError as error:
        raise _Invalid(("paths",), str(error)) from None
    used = {name for both in ends.values() for name in both}
    if idle := [name for name in names if name not in used]:
        raise _Invalid(("ports", idle[0]), "is on no path: leave it out, or name a path from or to it")


def _check_addresses(location: Location, side: Side) -> None:
    needed = ((side.version, f"has version {side.version}"), (side.link_version, "has a tunnel"))
    for version, because in needed:
        if side.address(version) is None:
            raise _Invalid(
                (*location, f"ipv{version}"),
                f"is missing: {location[-1]} {because} and needs an IPv{version} address",
            )
    for version in (4, 6):
        own = side.address(version)
        if own is None:
            continue
        reason = host_address.fault_of(own)
        if reason is None and version == side.version and own.ip.is_link_local and side.has_gateway:
            reason = "is a link-local address, and no router forwards its frames"
        if reason is not None:
            raise _Invalid((*location, f"ipv{version}"), f"{own.ip} is not a valid host address: it {reason}")


def _check_gateways(location: Location, side: Side) -> None:
    for version in (4, 6):
        gateway = side.gateway(version)
        if gateway is not None:
            _check_gateway((*location, f"gateway{version}"), gateway, side.address(version))
    if side.has_gateway and side.gateway_mac is None and side.gateway(side.link_version) is None:
        raise _Invalid(
            (*location, f"gateway{side.link_version}"),
            f"is missing: {_link_of(location[-1], side)}; give it, or gateway_mac",
        )
    if side.vlans is not None and (side.gateway_mac is not None or not side.has_gateway):
        text = "has no effect: nobody is asked for a MAC address"
        raise _Invalid(
            (*location, "vlans"), f"{text} {'beside gateway_mac' if side.gateway_mac else 'without a gateway'}"
        )


def _link_of(name: object, side: Side) -> str:
    if side.tunnel is not None:
        return f"{name} has a tunnel over IPv{side.link_version}"
    return f"the foreground of {name} is IPv{side.version}"


def _check_gateway(location: Location, gateway: Address, own: Interface | None) -> None:
    family = f"ipv{gateway.version}"
    if own is None:
        raise _Invalid(location, f"has no effect without {path_of((*location[:-1], family))}")
    if gateway == own.ip:
        raise _Invalid(location, f"{gateway} is the tester's own address ({family}); the gateway is the DUT's")
    if gateway not in own.network and not gateway.is_link_local:
        raise _Invalid(location, f"{gateway} is not in {own.network}, the network of {family}")
    reason = host_address.fault_in(gateway, own.network) if gateway.version == 4 else host_address.fault(gateway)
    if reason is not None:
        raise _Invalid(location, f"{gateway} {reason}; the gateway is the DUT's address")


def _check_ports(setup: Setup, within: Location) -> None:
    sides = setup.sides()
    all_sides = "both sides" if setup.ports is None else "all ports"
    for kind in MEMORY_PORTS:
        others = [name for name, side in sides.items() if side.port != kind]
        if others and len(others) < len(sides):
            raise _Invalid(
                (*within, others[0], "port"), f"is {sides[others[0]].port}, but {kind} must be the port of {all_sides}"
            )
    seen: dict[str, str] = {}
    for name, side in sides.items():
        if side.port in MEMORY_PORTS:
            if gateway := side.gateway(4) or side.gateway(6):
                raise _Invalid(
                    (*within, name, f"gateway{gateway.version}"),
                    f"has no effect: nothing answers for {gateway} where the port is {side.port}; leave it out",
                )
        elif (other := seen.setdefault(side.port, name)) != name:
            raise _Invalid((*within, name, "port"), f"{side.port} is already the port of {other}")


def _check_streams(setup: Setup) -> None:
    paths = setup.path_ends()
    _check_number_of_streams(setup)
    for number, one in enumerate(setup.streams):
        location: Location = ("streams", number)
        if one.paths is not None and setup.ports is None:
            raise _Invalid((*location, "paths"), "is for named ports: streams of left and right have directions")
        if setup.ports is not None and one.directions != "both":
            raise _Invalid((*location, "directions"), "does not go with named ports: give the stream's paths")
        if unknown := next((path for path in one.paths or () if path not in paths), None):
            raise _Invalid((*location, "paths"), f"has {unknown}, but the paths are {', '.join(paths)}")
        if any(one.name == other.name and _name_is_taken(one, other, paths) for other in setup.streams[:number]):
            raise _Invalid((*location, "name"), f"{one.name} is the name of another stream too")


def _check_number_of_streams(setup: Setup) -> None:
    if len(setup.streams) > MOST_STREAMS:
        raise _Invalid(("streams", MOST_STREAMS), f"is one more than a configuration can have ({MOST_STREAMS})")


def _name_is_taken(one: PlannedStream, other: PlannedStream, paths: Iterable[Direction]) -> bool:
    """Whether two streams of one name are confused: on a path, or because one has a rate of its own."""
    own_rate = one.rate is not None or other.rate is not None
    return own_rate or any(one.sends_on(path) and other.sends_on(path) for path in paths)


def _check_between(setup: Setup, within: Location) -> None:
    sides = setup.sides()
    for version in (4, 6):
        seen: dict[Address, str] = {}
        for name, side in sides.items():
            own = side.address(version)
            if own is not None and (other := seen.setdefault(own.ip, name)) != name:
                raise _Invalid((*within, name, f"ipv{version}"), f"{own.ip} is already the address of {other}")
        for name, side in sides.items():
            if (gateway := side.gateway(version)) in seen:
                raise _Invalid(
                    (*within, name, f"gateway{version}"),
                    f"{gateway} is the tester's own address ({seen[gateway]}); the gateway is the DUT's",
                )
    with_gateway = [name for name, side in sides.items() if side.has_gateway]
    without = [name for name in sides if name not in with_gateway]
    if with_gateway and without:
        version = sides[without[0]].link_version
        raise _Invalid(
            (*within, without[0], f"gateway{version}"),
            f"is missing: {with_gateway[0]} has a gateway, so the sides have a DUT between them, not a cable",
        )


def missing_seen_as(other: Side) -> str:
    """The message for a missing ``seen_as``: ``other`` sends to it through the translator."""
    return (
        f"is missing: the other side needs an IPv{other.version} address for this one, as the translator maps it; for a"
        " DNS64 server give dns64 instead"
    )


def _check_seen_as(port: Location, side: Side, senders: Iterable[Side]) -> None:
    """A translator between IP versions needs such an address on one side at least, NAT within a version may
    have one."""
    location, senders = (*port, "seen_as"), list(senders)
    other = next((one for one in senders if one.version != side.version), None)
    if side.seen_as is None:
        if other is not None and other.seen_as is None:
            raise _Invalid(location, missing_seen_as(other))
        return
    sent = side.version if other is None else other.version
    if not senders:
        raise _Invalid(location, "has no effect: no path leads to this side; leave it out")
    if side.seen_as.version != sent:
        raise _Invalid(location, f"{side.seen_as} is not an IPv{sent} address, but the other side sends IPv{sent}")
    on_links = [own for one in (side, *senders) if one.version == sent and (own := one.address(sent)) is not None]
    if (reason := _no_translation(side.seen_as, on_links, routed=side.has_gateway)) is not None:
        raise _Invalid(location, f"{side.seen_as} {reason}")


def _no_translation(address: Address, on_links: Iterable[Interface], *, routed: bool) -> str | None:
    """Why no DUT translates an address for one of the tester's ports; None: it can. ``on_links``: the tester's
    own addresses of the version."""
    if address in [own.ip for own in on_links]:
        return "is the tester's own address: leave it out where nothing is translated"
    if routed and address.is_link_local:
        return "is a link-local address, and no router forwards its frames"
    reasons = (host_address.fault_in(address, own.network) for own in on_links)
    return next((reason for reason in reasons if reason is not None), None)
