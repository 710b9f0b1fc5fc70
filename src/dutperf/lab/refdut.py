# SPDX-License-Identifier: Apache-2.0
"""Properties and control socket of the reference DUT, the process ``dutperf-refdut``
(engine/refdut/README.md).

Its counters are the ground truth for a tester at the other end of the cables.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dutperf.errors import DutperfError
from dutperf.model.value import Value

PROGRAM = "dutperf-refdut"
VARIABLE = "DUTPERF_REFDUT"
"""Environment variable with the path of another program than the one built here."""

Ratio = Annotated[float, Field(ge=0, le=1)]
Every = Annotated[int, Field(ge=0, le=1_000_000_000)]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]


class RefDutError(DutperfError):
    """The reference DUT cannot be reached or rejects a request; the text is one sentence."""


class Properties(Value):
    """Configured behaviour of the reference DUT. Ratios are shares of the frames of a direction;
    ``*_every=N`` means every Nth of them (0: none)."""

    seed: Annotated[
        int,
        Field(ge=0, lt=2**53, description="random seed, also for the distribution of flows over cores"),
    ] = 1
    capacity_fps: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="frames/s that a simulated core serves, both directions together; 0: no limit",
        ),
    ] = 0
    queue: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="queue length of a core in frames, besides the one in service; further frames are lost",
        ),
    ] = 1000
    cores: Annotated[
        int,
        Field(ge=1, le=64, description="simulated cores; a hash of addresses and ports selects the core of a flow"),
    ] = 1
    flow_cache: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="flows that it knows, of both directions together: those that came last; needs flow_miss_us",
        ),
    ] = 1024
    flow_miss_us: Annotated[
        float,
        Field(ge=0, le=1_000_000, description="time by which a frame of any other flow is served longer, in us"),
    ] = 0
    delay_ms: Annotated[Milliseconds, Field(description="delay of every frame, in ms")] = 0
    jitter: Annotated[
        Literal["none", "normal", "exponential"],
        Field(description="distribution of an added delay: none, normal or exponential"),
    ] = "none"
    jitter_ms: Annotated[
        Milliseconds, Field(description="its standard deviation (normal) or mean (exponential), in ms")
    ] = 0
    extra_delay: Annotated[Ratio, Field(description="share of the frames that are delayed by extra_delay_ms too")] = 0
    extra_delay_every: Annotated[Every, Field(description="every Nth frame is delayed by extra_delay_ms too")] = 0
    extra_delay_ms: Annotated[Milliseconds, Field(description="the additional delay, in ms")] = 0
    loss: Annotated[Ratio, Field(description="share of the frames that is lost at random")] = 0
    loss_every: Annotated[Every, Field(description="every Nth frame is lost")] = 0
    duplicate: Annotated[Ratio, Field(description="share of the frames that is sent twice")] = 0
    duplicate_every: Annotated[Every, Field(description="every Nth frame is sent twice")] = 0
    reorder: Annotated[Ratio, Field(description="share of the frames that are reordered, behind the next one")] = 0
    reorder_every: Annotated[Every, Field(description="every Nth frame is reordered, behind the next one")] = 0
    bit_error: Annotated[Ratio, Field(description="share of the frames with one bit wrong in the last eight bytes")] = 0
    bit_error_every: Annotated[Every, Field(description="every Nth frame has one bit wrong")] = 0

    def request(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "capacity_fps": self.capacity_fps,
            "queue_frames": self.queue,
            "cores": self.cores,
            "flow_cache": self.flow_cache,
            "flow_miss_ns": nanoseconds(self.flow_miss_us / 1e6),
            "delay_ns": nanoseconds(self.delay_ms / 1e3),
            "jitter": {"kind": self.jitter, "ns": nanoseconds(self.jitter_ms / 1e3)},
            "extra_delay": {
                **choice(self.extra_delay, self.extra_delay_every),
                "ns": nanoseconds(self.extra_delay_ms / 1e3),
            },
            "loss": choice(self.loss, self.loss_every),
            "duplicate": choice(self.duplicate, self.duplicate_every),
            "reorder": choice(self.reorder, self.reorder_every),
            "bit_error": choice(self.bit_error, self.bit_error_every),
        }


class NatProperties(Properties):
    """Configured behaviour of the reference DUT as a NAT, besides that of all its frames."""

    connections: Annotated[
        int, Field(ge=1, le=100_000_000, description="capacity of the connection table; 72 to 80 bytes of memory each")
    ] = 262_144
    when_full: Annotated[
        Literal["refuse", "evict", "evict_unanswered", "pass"],
        Field(
            description="what happens to a new connection in a full table: refuse (its frame is lost), evict (those"
            " unused for longest), evict_unanswered (the oldest without a reverse frame, as Linux), pass (its frame is"
            " forwarded, without a connection)"
        ),
    ] = "refuse"
    evict_count: Annotated[
        int, Field(ge=1, le=100_000_000, description="connections evicted at once; needs when_full=evict")
    ] = 1
    timeout_s: Annotated[
        float, Field(ge=0, le=86_400, description="life of a connection without a frame, in s; 0: for ever")
    ] = 0
    establishment_cps: Annotated[
        int,
        Field(ge=0, le=1_000_000_000, description="new connections/s; frames of further ones are lost; 0: no limit"),
    ] = 0
    establishment_queue: Annotated[
        int, Field(ge=0, le=1_000_000, description="new connections that may exceed establishment_cps in a burst")
    ] = 1000
    deletion_cps: Annotated[
        int, Field(ge=0, le=1_000_000_000, description="connections/s deleted on request; 0: all at once")
    ] = 0
    ports: Annotated[
        Literal["next", "preserve"],
        Field(
            description="outside port of a connection: the next one of the pool, or the inside port while it is free"
        ),
    ] = "next"
    remap_every: Annotated[Every, Field(description="every Nth frame of a connection changes its outside port")] = 0
    remap_after_ms: Annotated[
        int, Field(ge=0, le=3_600_000, description="a connection changes its outside port after so long, in ms")
    ] = 0

    def request(self) -> dict[str, Any]:
        same = ("when_full", "evict_count", "establishment_cps", "establishment_queue", "deletion_cps", "ports")
        nat = {name: getattr(self, name) for name in (*same, "remap_every", "remap_after_ms")}
        return {
            **super().request(),
            "nat": {"capacity": self.connections, "timeout_ns": nanoseconds(self.timeout_s), **nat},
        }


class Dns64Properties(Properties):
    """Configured behaviour of the reference DUT as a DNS64. ``capacity_fps`` and ``queue`` are about the clients'
    queries, delays, losses, copies and so on about the answers to them. Wrong answers are every Nth with addresses,
    counted from the start; where kinds meet, it is the first one."""

    capacity_fps: Annotated[
        int,
        Field(ge=0, le=1_000_000_000, description="client queries/s that a simulated core serves; 0: no limit"),
    ] = 0
    queue: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="queue length of a core in client queries, besides the one in service; further ones are lost",
        ),
    ] = 1000
    cache: Annotated[
        int,
        Field(
            ge=0,
            le=100_000_000,
            description="names in the cache, some 250 bytes of memory each; the one unused for longest is evicted;"
            " 0: none",
        ),
    ] = 0
    pending: Annotated[
        int,
        Field(ge=1, le=1_048_576, description="queries that may wait for the server; further ones are lost"),
    ] = 65_536
    wrong_prefix_every: Annotated[Every, Field(description="every Nth synthesised answer has another prefix")] = 0
    wrong_address_every: Annotated[Every, Field(description="every Nth answer has another address")] = 0
    servfail_every: Annotated[Every, Field(description="every Nth answer is SERVFAIL")] = 0
    refused_every: Annotated[Every, Field(description="every Nth answer is REFUSED")] = 0
    nxdomain_every: Annotated[Every, Field(description="every Nth answer is NXDOMAIN")] = 0
    nodata_every: Annotated[Every, Field(description="every Nth answer has no records")] = 0
    truncated_every: Annotated[Every, Field(description="every Nth answer has no records and TC set")] = 0
    malformed_every: Annotated[Every, Field(description="every Nth answer is without its last five bytes")] = 0
    wrong_id_every: Annotated[Every, Field(description="every Nth answer has another message ID")] = 0

    def request(self) -> dict[str, Any]:
        wrong = {kind: getattr(self, f"{kind}_every") for kind in WRONG_KINDS}
        return {
            **super().request(),
            "dns64": {"cache_names": self.cache, "pending": self.pending, "wrong": wrong},
        }


WRONG_KINDS = tuple(
    name.removesuffix("_every")
    for name in Dns64Properties.model_fields
    if name.endswith("_every") and name not in Properties.model_fields
)
"""Kinds of wrong answers of a DNS64."""


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def choice(ratio: float, every: int) -> dict[str, int]:
    """Selection of frames, in the form of the protocol."""
    return {"ratio_ppb": round(ratio * 1e9), "every": every}


class Quantiles(Value):
    """Quantiles of a distribution of times, in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class DirectionTruth(Value):
    """Counters of one direction. ``received`` = ``forwarded`` + all of ``lost`` + ``held``; duplicates are
    only in ``duplicated``."""

    received: int
    forwarded: int
    translated: int
    tunnelled: int
    """Encapsulated or decapsulated."""
    held: int
    lost: dict[str, int]
    duplicated: int
    reordered: int
    delayed: int
    corrupted: int
    delay_us: Quantiles
    """Actual time from the arrival of a frame until it was handed to the port."""
    lateness_us: Quantiles
    """The part of it that this machine added to the configured delay."""

    @property
    def lost_total(self) -> int:
        return sum(self.lost.values())


class PortLosses(Value):
    """Frames lost by a port of the DUT: before the DUT received them, and after it had counted them as
    forwarded."""

    lost_before: int
    lost_after: int


class ConnectionsTruth(Value):
    """Counters of the connections of a NAT. ``created`` = ``evicted`` + ``expired`` + ``deleted`` +
    ``current``, unless they were cleared while there were connections."""

    created: int
    refused: int
    """Frames of new connections that were lost: in ``lost`` by cause."""
    untracked: int
    """Frames of new connections that passed without one."""
    evicted: int
    expired: int
    deleted: int
    """On request, or by a reset."""
    remapped: int
    current: int
    highest: int


class Upstream(Value):
    """Messages to the server by type, retries too."""

    a: int
    aaaa: int


class Dns64Truth(Value):
    """Counters of a DNS64. Its clients' queries are the forward direction of :class:`Truth`, where those lost by the
    capacity are, its answers the reverse direction."""

    queries: int
    """Of clients, after the queue of the core."""
    answered: int
    """Right or wrong; answers that are lost later count, copies do not."""
    cache_hits: int
    synthesised: int
    """Answers with addresses that were made from an A record, wrong and cached ones too."""
    existing: int
    """Answers with addresses that were an AAAA record."""
    upstream: Upstream
    retries: int
    timed_out: int
    """Queries that the server did not answer: SERVFAIL."""
    unsent: int
    """Of ``upstream``: not sent, because the next hop was not known, or without a buffer."""
    unexpected: int
    """Messages from the server that answer no pending query."""
    malformed: int
    """Messages of clients that cannot be read."""
    unsupported: int
    """Queries for anything but AAAA records."""
    pending: int
    pending_full: int
    """Queries that were lost because too many waited for the server."""
    cached: int
    evicted: int
    wrong: dict[str, int]
    """Answers that are wrong on purpose, by kind."""


class Truth(Value):
    """Counters of the reference DUT since it was configured or cleared."""

    forward: DirectionTruth
    reverse: DirectionTruth
    left: PortLosses
    right: PortLosses
    checksums_computed: int
    """UDP checksums added to IPv4 packets without one (RFC 7915 section 4.5)."""
    connections: ConnectionsTruth | None = None
    """None: it is not a NAT."""
    dns64: Dns64Truth | None = None


@dataclass(frozen=True)
class RefDut:
    """A running reference DUT, by its control socket. All methods raise RefDutError if it does not answer
    or rejects the request."""

    socket: Path
    timeout_s: float = 30.0
    """Time limit for an answer."""
    deletion_timeout_s: float = 3600.0
    """Time limit for the deletion of all connections."""

    def open(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Open its ports; possible once."""
        return self._ask("open", parameters)

    def configure(self, properties: Properties) -> None:
        """Set its properties. Frames inside are dropped, connections deleted; the counters restart at 0."""
        self._ask("configure", properties.request())

    def counters(self) -> Truth:
        return Truth.model_validate(
            {name: value for name, value in self._ask("counters").items() if name not in ("event", "id")}
        )

    def clear(self) -> None:
        """Reset the counters. Frames that are inside will be missing in the balance."""
        self._ask("clear")

    def clear_connections(self) -> None:
        """Delete all connections of a NAT; returns when they are deleted."""
        replace(self, timeout_s=self.deletion_timeout_s)._ask("clear_connections")

    def stall(self, duration_s: float, after_s: float = 0.0) -> None:
        """Serve nothing for ``duration_s`` seconds, from ``after_s`` seconds after the next frame that
        arrives."""
        self._ask("stall", {"duration_ns": nanoseconds(duration_s), "after_ns": nanoseconds(after_s)})

    def reset(self, duration_s: float, after_s: float = 0.0) -> None:
        """Lose all frames inside and all that arrive for ``duration_s`` seconds, from ``after_s`` seconds
        after the next frame that arrives; answer no ARP and NDP meanwhile."""
        self._ask("reset", {"duration_ns": nanoseconds(duration_s), "after_ns": nanoseconds(after_s)})

    def _ask(self, method: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = {"id": 1, "method": method} | ({} if parameters is None else {"params": dict(parameters)})
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self.timeout_s)
                connection.connect(str(self.socket))
                connection.sendall(json.dumps(request).encode() + b"\n")
                line = connection.makefile().readline()
            answer: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            raise RefDutError(f"the reference DUT does not answer {method}: {error}") from None
        if answer.get("event") == "error":
            raise RefDutError(f"the reference DUT rejects {method}: {answer.get('message')}")
        return answer
