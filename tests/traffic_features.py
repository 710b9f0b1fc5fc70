# SPDX-License-Identifier: Apache-2.0
"""Each feature of dutperf.traffic.combinations as a user chooses it: conditions and a configuration, for tests of
pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dutperf.setup import configuration
from dutperf.setup.configuration import Setup
from dutperf.traffic import combinations as all_of
from dutperf.traffic.combinations import Feature

Config = dict[str, Any]


def nothing(config: Config) -> None:
    """Leaves it as it is."""


def set_side(name: str, **members: Any) -> Callable[[Config], None]:
    """The side has these members, whatever it is called."""

    def change(config: Config) -> None:
        place = config if name in config else config["ports"]
        place[{"left": "a", "right": "b"}[name] if place is not config else name].update(members)

    return change


def set_engine(**members: Any) -> Callable[[Config], None]:
    """The engine has these members; lists grow."""

    def change(config: Config) -> None:
        engine = config.setdefault("engine", {})
        for key, value in members.items():
            engine[key] = [*engine.get(key, []), *value] if isinstance(value, list) else value

    return change


def name_ports(config: Config) -> None:
    """Left and right are a and b."""
    config["ports"] = {"a": config.pop("left"), "b": config.pop("right")}
    config["paths"] = ["a->b", "b->a"]


def add_a_port(config: Config) -> None:
    """A third port."""
    config["ports"]["c"] = config["ports"]["b"] | config.pop("third")
    config["paths"].append("c->a")


def share_a_port(config: Config) -> None:
    """Two paths begin at a."""
    config["paths"].append("a->c")


def add_tunnels(config: Config) -> None:
    """One on each side: a DUT that only forwards them is the end of neither, and each arrives in one."""
    for side, tunnel in (("left", "ipv4(destination=198.18.0.1)"), ("right", "ipv6(destination=2001:2:0:8000::1)")):
        config[side] = {**config[side], "tunnel": tunnel}


def add_streams(*streams: Config) -> Callable[[Config], None]:
    """The configuration has these too."""

    def change(config: Config) -> None:
        config["streams"] = [*config.get("streams", []), *streams]

    return change


@dataclass(frozen=True)
class Choice:
    """How a feature is chosen."""

    conditions: Config = field(default_factory=dict)
    config: Callable[[Config], None] = nothing
    version: int | None = None
    """The IP version that it needs."""


CHOICES: dict[Feature, Choice] = {
    all_of.HEADERS: Choice({"frame": "vlan(id=7)/ip/udp"}),
    all_of.MIX: Choice({"frame_sizes": "imix"}),
    all_of.FLOWS: Choice({"flows": 10}),
    all_of.JOINING: Choice({"flows": 10, "flows_apart_s": 0.1}),
    all_of.STREAMS: Choice(
        config=add_streams({"name": "voice", "frame": "ip(dscp=46)/udp", "share": 3}, {"name": "web"})
    ),
    all_of.OTHER_STREAMS: Choice(config=add_streams({"name": "call", "rate": 100, "sizes": 128, "pattern": "poisson"})),
    all_of.EXTENSION: Choice({"modifiers": ["extension-header:destination:50%"]}, version=6),
    all_of.NATIVE: Choice({"foreground": "4:3"}),
    all_of.NETWORKS: Choice({"networks": 16}),
    all_of.ADDRESSES: Choice(
        config=set_side("right", varying_address={"mode": "random", "min": 256, "max": 511, "offset4": 2})
    ),
    all_of.PORTS: Choice({"ports": "increasing"}),
    all_of.TUNNEL: Choice(config=add_tunnels),
    all_of.POISSON: Choice({"pattern": "poisson"}),
    all_of.BURSTS: Choice({"pattern": "bursts:16"}),
    all_of.CHANGING: Choice({"pattern": "ramp:1k-2k"}),
    all_of.DIRECTION_RATES: Choice({"direction_rates": "4:1"}),
    all_of.ONE_DIRECTION: Choice({"directions": "forward"}),
    all_of.WARM_UP: Choice({"warm_up_s": 0.1}),
    all_of.BROADCAST: Choice({"modifiers": ["broadcast"]}, version=4),
    all_of.MANAGEMENT: Choice({"modifiers": ["management"]}),
    all_of.ROUTING: Choice({"modifiers": ["routing-updates"]}),
    all_of.NAMED_PORTS: Choice(config=name_ports),
    all_of.MORE_PORTS: Choice(config=add_a_port),
    all_of.SHARED_PORT: Choice(config=share_a_port),
    all_of.CONNECTIONS: Choice({"connections": 100}),
    all_of.FILL: Choice({"pacing": "fill"}),
    all_of.TIMEOUT: Choice({"frame_timeout_ms": 100}),
    all_of.QUEUES: Choice(config=set_engine(queues=2)),
    all_of.SEND_AT: Choice(config=set_engine(offloads=["send_at"])),
    all_of.RATE_LIMIT: Choice(config=set_engine(offloads=["rate_limit"])),
}
OF_CARDS = {all_of.FILL, all_of.QUEUES, all_of.SEND_AT, all_of.RATE_LIMIT}
"""What a card alone can do."""
IN_A_TUNNEL = {
    all_of.HEADERS: Choice({"frame": "ip(dscp=46)/udp"}),
    all_of.MIX: Choice({"frame_sizes": "imix:64=7,594=4,1400=1"}),
}
"""VLAN tags do not go into a tunnel, and the frames get longer in it."""
NEEDED = {all_of.MORE_PORTS: (all_of.NAMED_PORTS,), all_of.SHARED_PORT: (all_of.NAMED_PORTS, all_of.MORE_PORTS)}
"""Without which there are not some features."""
ORDER = {all_of.NAMED_PORTS: 1, all_of.MORE_PORTS: 2, all_of.SHARED_PORT: 3}
"""The configuration has left and right until its ports get names."""


def with_needed(*features: Feature) -> tuple[Feature, ...]:
    """And those that they need."""
    return tuple(dict.fromkeys((*features, *(other for one in features for other in NEEDED.get(one, ())))))


def refused(pair: tuple[Feature, Feature]) -> bool:
    """By the table, also for what they need."""
    return any({one.feature, one.beside} <= {*with_needed(*pair)} for one in all_of.REFUSALS)


def chosen(config: Config, *features: Feature) -> tuple[Setup, Config]:
    """``config``, which has left, right, and for a third port ``third``, with the features; and their conditions."""
    made = {name: dict(value) if isinstance(value, dict) else value for name, value in config.items()}
    wanted = with_needed(*features)
    conditions: Config = {}
    for feature in sorted(wanted, key=lambda one: ORDER.get(one, 0)):
        choice = IN_A_TUNNEL.get(feature, CHOICES[feature]) if all_of.TUNNEL in wanted else CHOICES[feature]
        choice.config(made)
        for name, value in choice.conditions.items():
            conditions[name] = [*conditions.get(name, []), *value] if isinstance(value, list) else value
    made.pop("third", None)
    return configuration.parse(made, "test"), conditions


def versions(*features: Feature) -> tuple[int, int]:
    """The IP versions of left and right that the features need: of several the first one's at the left."""
    needed = [CHOICES[one].version for one in features if CHOICES[one].version is not None]
    return (needed[0], needed[-1]) if needed else (4, 4)  # type: ignore[return-value]
