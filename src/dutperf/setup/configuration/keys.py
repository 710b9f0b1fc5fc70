# SPDX-License-Identifier: Apache-2.0
"""The keys of a configuration and what each of them may be."""

from __future__ import annotations

import re
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
from typing import Annotated, Any, Literal
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
    ValidationInfo,
)

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
)
from dutperf.model.value import Port16
from dutperf.setup import path_texts, tunnel
from dutperf.setup.dns64 import Dns64Setup
from dutperf.setup.planned_stream import PlannedStream
from dutperf.setup.tunnel import Tunnel
from dutperf.setup.yaml_text import Text, one_or_several

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


HAS_LOCATIONS = "has_locations"
"""Whether ports are locations of an OTG server, which may be any text: of the context in which values are checked."""


def is_port(text: str) -> bool:
    return any(re.fullmatch(spec, text) for spec in _PORT_SPECS)


def is_interface(port: str) -> bool:
    """Whether a port is named by its interface alone: the engine chooses how it uses it."""
    return port not in MEMORY_PORTS and re.fullmatch(_INTERFACE_ALONE, port) is not None


def _port_spec(text: object, info: ValidationInfo) -> object:
    if (info.context or {}).get(HAS_LOCATIONS):
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
    """``text``, checked, in lower case. Raises ValueError: it is no unicast address."""
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
    """Prints the number of connections (``connections 12``); without that name the first whole number counts."""
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
