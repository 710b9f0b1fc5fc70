# SPDX-License-Identifier: Apache-2.0
"""Frames with headers of the user's choice, of several sizes, or of several flows (docs/frames.md)."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.frames import Endpoints, FrameError, Stack, Template
from dutperf.model import IPV6_HEADER_EXCESS, MAX_FRAME_SIZE, Direction, Stream
from dutperf.setup.configuration import ConfigError, ParameterError, Side
from dutperf.traffic import arriving_tags, parts
from dutperf.traffic.base import TrafficKind
from dutperf.traffic.endpoints import endpoints
from dutperf.traffic.parts import Part
from dutperf.traffic.udp_ports import destination_ports, source_ports

Headers = tuple[Stack | Template, ...]
"""Of each part's frames."""


class DescribedTraffic(TrafficKind):
    """Each direction's frames are those of its :class:`dutperf.traffic.parts.Part`."""

    def check_kind(self) -> None:
        """Some of what plain frames can have, and headers that are given twice."""
        self._check_headers_once()
        kind = "frames with headers of your choice, of several sizes or flows"
        if self.conditions.foreground.native_percent:
            raise ParameterError(f"native IPv6 in the background does not go with {kind}", "foreground")
        for name, side in self.setup.sides().items():
            if self.networks(side) > 1:
                raise ParameterError(f"several networks do not go with {kind}", "networks")
            if side.varying_address is not None:
                raise ConfigError(f"does not go with {kind}", f"{self.setup.key_of(name)}.varying_address")
        if "checksums" in self.setup.engine.offloads:
            raise ConfigError(f"the offload checksums does not go with {kind}", "engine.offloads")

    def smallest_sizes(self) -> list[int]:
        excess = IPV6_HEADER_EXCESS if self.has_ipv6 else 0
        sizes = []
        for direction in self.active():
            each = parts.parts_of(self.setup, self.conditions, direction, MAX_FRAME_SIZE)
            sizes += [
                stack.min_size + (excess if stack.ip_version == 4 else 0)
                for part, stack in zip(each, self._headers(direction, each), strict=True)
                if part.sizes.order == (MAX_FRAME_SIZE,)
            ]
        return sizes

    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        sender, receiver = self.setup.ends(direction)
        each = parts.parts_of(self.setup, self.conditions, direction, frame_size)
        headers = self._headers(direction, each)
        shorter = {4: frame_size - self.size_ipv4(frame_size)}
        fitted = parts.fitted(each, headers, shorter)
        ends = Endpoints(ipv4=endpoints(sender, receiver, 4), ipv6=endpoints(sender, receiver, 6))
        try:
            members = parts.members(fitted, headers, ends, direction, shorter)
        except FrameError as error:
            raise self._refused(sender, error) from None
        back = [tags for part in fitted for tags in [self._back(part, receiver)] * len(part.sizes.sizes)]
        members["frames"] = tuple(
            frame.model_copy(update={"arrives_with": arriving_tags.of_described(frame, tags, receiver)})
            for frame, tags in zip(members["frames"], back, strict=True)
        )
        return Stream(**self.rhythm(direction, frame_size, rate_fps), **members)

    def _headers(self, direction: Direction, each: Sequence[Part]) -> Headers:
        sender, _ = self.setup.ends(direction)
        ports = (
            sender.source_port or source_ports(self.conditions.ports),
            sender.destination_port or destination_ports(self.conditions.ports),
        )
        try:
            return tuple(parts.stack_of(part, sender.version, ports) for part in each)
        except FrameError as error:
            raise self._refused(sender, error) from None

    def _back(self, part: Part, receiver: Side) -> arriving_tags.OfBack:
        try:
            return arriving_tags.of_back(part, receiver)
        except FrameError as error:
            raise self._refused(receiver, error) from None

    def _refused(self, sender: Side, error: FrameError) -> ParameterError | ConfigError:
        """An error in the headers, of the option or of the configuration."""
        if self.setup.streams:
            return ConfigError(str(error), "streams")
        if sender.frame is None:
            return ParameterError(str(error), "frame")
        return ConfigError(str(error), f"{self.key_of(sender)}.frame")

    def _check_headers_once(self) -> None:
        chosen, streams = self.conditions, self.setup.streams
        if streams and (chosen.frame or chosen.flows > 1):
            raise ParameterError(
                "the configuration has streams, each with its own", "frame" if chosen.frame else "flows"
            )
        for name, side in self.setup.sides().items():
            key = f"{self.setup.key_of(name)}.frame"
            if side.frame is not None and streams:
                raise ConfigError("does not go with streams, each with its own", key)
            if side.frame is not None and chosen.frame is not None:
                raise ParameterError(f"the configuration has headers in {key} already", "frame")
