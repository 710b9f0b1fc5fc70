# SPDX-License-Identifier: Apache-2.0
"""Streams with rates of their own, beside those that are measured: a call beside a download, or the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from dutperf.frames import Stack, Template
from dutperf.model import MAX_FRAME_SIZE, Bursts, Direction, Pattern, Stream, VlanTags
from dutperf.setup import steady_pattern
from dutperf.setup.conditions import Conditions, WithDuration
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.setup.planned_stream import PlannedStream
from dutperf.setup.rate import BitRate, Rate
from dutperf.setup.size_mix import SizeMix
from dutperf.spelling import with_and
from dutperf.traffic import parts
from dutperf.traffic.combinations import Where, of_stream
from dutperf.traffic.described import DescribedTraffic
from dutperf.traffic.parts import Part

_NS = 1e9
LEAST_LEFT = 0.001
"""Of the media: a smaller part is what rounding left."""


class PlannedOthers:
    """Those of the configuration (:class:`dutperf.traffic.base.OtherStreams`)."""

    def __init__(self, setup: Setup, conditions: Conditions) -> None:
        self._setup = setup
        self._kinds = [_OtherStream(setup, conditions, one) for one in setup.streams if one.rate is not None]
        self._made: dict[int, dict[Direction, Stream]] = {}
        self._taken: dict[tuple[str, int], float] = {}

    def streams(self, frame_size: int) -> dict[Direction, Stream]:
        if frame_size not in self._made:
            each = (kind.on_paths(frame_size) for kind in self._kinds)
            self._made[frame_size] = {direction: stream for made in each for direction, stream in made.items()}
        return self._made[frame_size]

    def stacks(self) -> dict[Direction, Stack | Template]:
        """The headers of each of them; addresses that they leave open are in its frames."""
        return {
            path.with_stream(kind.planned.name): stack
            for kind in self._kinds
            for path in kind.active()
            for stack in kind.headers(path, kind.parts_of(path, MAX_FRAME_SIZE))
        }

    def left_of_media(self, path: Direction, frame_size: int) -> float:
        media_mbps = self._setup.media_mbps
        if media_mbps is None or not self._kinds:
            return 1.0
        taken_mbps = self._taken_mbps(path.sending_port, frame_size)
        left = 1 - taken_mbps / media_mbps
        if left < LEAST_LEFT:
            names = self._names_from(path.sending_port, frame_size)
            raise ConfigError(
                f"{with_and(names)} {'leave' if len(names) > 1 else 'leaves'} nothing to measure {path}:"
                f" {taken_mbps:,.2f} of {media_mbps:,} Mbit/s are taken",
                "streams",
            )
        return left

    def check_media(self, frame_size: int) -> None:
        media_mbps = self._setup.media_mbps
        for port in dict.fromkeys(one.sending_port for one in self.streams(frame_size)):
            taken_mbps = self._taken_mbps(port, frame_size)
            if media_mbps is not None and taken_mbps > media_mbps:
                raise ConfigError(
                    f"{with_and(self._names_from(port, frame_size))} exceed the media at the port {port} in sum:"
                    f" {taken_mbps:,.2f} of {media_mbps:,} Mbit/s",
                    "streams",
                )

    def _taken_mbps(self, port: str, frame_size: int) -> float:
        """By those that a port sends, on all of its paths. Each path from it asks for it."""
        if (port, frame_size) not in self._taken:
            own = [each for one, each in self.streams(frame_size).items() if one.sending_port == port]
            self._taken[port, frame_size] = _most_mbps(own)
        return self._taken[port, frame_size]

    def _names_from(self, port: str, frame_size: int) -> Sequence[str]:
        return list(dict.fromkeys(one.stream for one in self.streams(frame_size) if one.sending_port == port))


def _most_mbps(streams: Sequence[Stream]) -> float:
    """On the wire, of those that send at the same time."""

    def at(time_ns: int) -> float:
        each = (one for one in streams if 0 <= time_ns - (one.begin_ns or 0) < (one.sends_ns or inf))
        return sum(one.rate_fps * one.wire_bits for one in each) / 1e6

    return max((at(one.begin_ns or 0) for one in streams), default=0.0)


class _OtherStream(DescribedTraffic):
    """The frames of one of them, on each of its paths. Where its headers leave open addresses and ports, they are as
    those of the frames that are measured."""

    def __init__(self, setup: Setup, conditions: Conditions, planned: PlannedStream) -> None:
        super().__init__(setup, conditions)
        self.planned = planned

    def on_paths(self, frame_size: int) -> dict[Direction, Stream]:
        """What it sends on each path while frames of ``frame_size`` bytes are measured. Raises ConfigError: headers,
        sizes or times that are not possible, or a rate that the media cannot carry."""
        for direction in self.active():
            each = self.parts_of(direction, MAX_FRAME_SIZE)
            self.check_flows(direction, each, self.headers(direction, each))
        own: dict[str, Any] = self._interval() | {"pattern": self._own_pattern()}
        return {
            path.with_stream(self.planned.name): self._at_its_rate(self.stream(path, frame_size, 1), own)
            for path in self.active()
        }

    def _at_its_rate(self, stream: Stream, own: dict[str, Any]) -> Stream:
        rate, mbps = self.planned.rate, self.setup.media_mbps
        assert rate is not None, "it has one"
        if isinstance(rate, BitRate):
            rate = Rate(value=rate.fps(stream.mean_size), unit="fps")
        try:
            rate_fps = rate.offered_fps(None if mbps is None else int(mbps * 1e6 / stream.wire_bits))
        except ValueError as error:
            raise self._refused("rate", str(error)) from None
        within_fps = self.planned.burst_rate
        if within_fps is not None and within_fps < rate_fps:
            raise self._refused(
                "burst_rate",
                f"{within_fps:,} frames/s within a burst are less than the mean rate, {rate_fps:,} frames/s",
            )
        return stream.model_copy(update={"rate_fps": rate_fps, **own})

    def _own_pattern(self) -> Pattern | None:
        pattern = steady_pattern.parsed(self.planned.pattern or "constant")
        if not isinstance(pattern, Bursts):
            return pattern
        return pattern.model_copy(update={"within_fps": self.planned.burst_rate})

    def _interval(self) -> dict[str, int | None]:
        """In which part of the sending time it sends."""
        begin_s, sends_s = self.planned.begin_s or 0.0, self.planned.duration_s
        if begin_s == 0 and sends_s is None:
            return {}
        key = "begin_s" if sends_s is None else "duration_s"
        if not isinstance(self.given, WithDuration):
            raise self._refused(key, "the trials of this measurement have no duration of their own")
        lasts_s = self.conditions.duration_s
        begin_ns, lasts_ns = round(begin_s * _NS), round(lasts_s * _NS)
        sends_ns = None if sends_s is None else round(sends_s * _NS)
        if begin_ns >= lasts_ns or begin_ns + (sends_ns or 0) > lasts_ns:
            until = f"begins {begin_s:g} s" if sends_s is None else f"ends {begin_s + sends_s:g} s"
            raise self._refused(key, f"{until} after the start of a trial, which sends for {lasts_s:g} s")
        return {"begin_ns": begin_ns or None, "sends_ns": sends_ns}

    # --- what differs from the frames that are measured -------------------------------------------

    def active(self) -> tuple[Direction, ...]:
        return tuple(path for path in self.setup.path_ends() if self.planned.sends_on(path))

    def parts_of(self, direction: Direction, frame_size: int) -> tuple[Part, ...]:
        sender, _ = self.setup.ends(direction)
        sizes = parts.sizes_of(self.planned, SizeMix.single(frame_size))
        tunnel = sender.tunnel_headers
        return (Part("", self.planned.frame, sizes, self.planned.flows, number=self._number, tunnel=tunnel),)

    def rhythm(
        self, direction: Direction, frame_size: int, rate_fps: int, vlan_tags: Sequence[VlanTags] = ()
    ) -> dict[str, Any]:
        return {"rate_fps": rate_fps}

    def learns_destination(self, direction: Direction) -> bool:
        return False

    def mixed_by(self) -> Where:
        return self._where("sizes")

    def _refused(self, key: str, text: str) -> ConfigError:
        return self._where(key).refused(f"the stream {self.planned.name}: {text}")

    @property
    def _number(self) -> int:
        return self.setup.streams.index(self.planned)

    def _where(self, key: str) -> Where:
        return of_stream(self._number, key)
