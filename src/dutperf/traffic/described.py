# SPDX-License-Identifier: Apache-2.0
"""Frames with headers of the user's choice, of several sizes, or of several flows (docs/frames.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction

from dutperf.frames import Endpoints, FrameError, Stack, Template, build
from dutperf.model import IPV6_HEADER_EXCESS, MAX_FRAME_SIZE, DescribedFrame, Direction, Stream
from dutperf.setup.configuration import ParameterError, Side
from dutperf.traffic import addresses, arriving_tags, combinations, parts
from dutperf.traffic.base import TrafficKind
from dutperf.traffic.combinations import Where, headers_of, of_stream
from dutperf.traffic.endpoints import endpoints, native_endpoints
from dutperf.traffic.parts import Part, TooManyKindsError
from dutperf.traffic.udp_ports import destination_ports, source_ports

Headers = tuple[Stack | Template, ...]
"""Of each part's frames."""


class DescribedTraffic(TrafficKind):
    """Each direction's frames are those of its :class:`dutperf.traffic.parts.Part`."""

    def check_kind(self) -> None:
        """Headers are given once, and leave open what else says something about it."""
        for name, side in self.setup.sides().items():
            if side.frame is not None and self.conditions.frame is not None:
                key = f"{self.setup.key_of(name)}.frame"
                raise ParameterError(f"the configuration has headers in {key} already", "frame")
        each = {way: self.parts_of(way, MAX_FRAME_SIZE) for way in self.active()}
        for direction, of_direction in each.items():
            headers = self.headers(direction, of_direction)
            self._check_ends(direction, of_direction, headers)
            self.check_flows(direction, of_direction, headers)
        wanted = self.conditions.modified_by.extension_headers is not None
        if wanted and not any(part.extension for of_direction in each.values() for part in of_direction):
            raise ParameterError("extension-header is for IPv6 frames, but no side sends any", "modifiers")

    def check_flows(self, direction: Direction, each: Sequence[Part], headers: Headers) -> None:
        """Something tells flows from each other."""
        for part, stack in zip(each, headers, strict=True):
            with self.refusing(direction.ports[0], part):
                frame = build(stack, stack.min_size, self.ends_of(part, direction), flows=part.flows or 1)
            if part.flows is None or (differ := frame.most_flows) >= part.flows:
                continue
            which = f"only {differ:,} of {part.flows:,} flows differ"
            if differ == 1:
                which = f"nothing tells {part.flows:,} flows from each other"
            way = "let a field of the headers take enough values by flow"
            if stack.own.ends_in_udp:
                way += ", or leave open UDP ports that are not fixed"
            raise self.flows_in(part).refused(f"{which}: {way}")

    def _check_ends(self, direction: Direction, each: Sequence[Part], headers: Headers) -> None:
        """Several networks and addresses that vary need headers without addresses."""
        sender, receiver = self.setup.ends(direction)
        foreground = [stack for part, stack in zip(each, headers, strict=True) if not part.native]
        open_ends = frozenset[str]().union(*map(parts.open_ends, foreground))
        varied = (
            sender.varying_address is not None,
            receiver.varying_address is not None or self.networks(receiver) > 1,
        )
        for name, end, chosen in zip(direction.ports, ("source", "destination"), varied, strict=True):
            if chosen and foreground and end not in open_ends:
                raise addresses.varied_by(self.setup, name).refused(
                    f"has no effect: the headers of the frames {direction} have {end} addresses of their own"
                )

    def smallest_sizes(self) -> list[int]:
        excess = IPV6_HEADER_EXCESS if self.has_ipv6 else 0
        sizes = []
        for direction in self.active():
            each = self.parts_of(direction, MAX_FRAME_SIZE)
            sizes += [
                stack.own.min_size + (excess if stack.own.ip_version == 4 else 0)
                for part, stack in zip(each, self.headers(direction, each), strict=True)
                if part.sizes.order == (MAX_FRAME_SIZE,)
            ]
        return sizes

    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        _, receiver = self.setup.ends(direction)
        each = self.parts_of(direction, frame_size)
        headers = self.headers(direction, each)
        shorter = {4: frame_size - self.size_ipv4(frame_size)}
        fitted = parts.fitted(each, headers, shorter)
        try:
            order = parts.order_of(fitted, self.conditions.foreground)
        except TooManyKindsError as error:
            raise self.mixed_by().refused(str(error)) from None
        frames: tuple[DescribedFrame, ...] = ()
        for part, stack in zip(fitted, headers, strict=True):
            ends = self.ends_of(part, direction)
            with self.refusing(direction.ports[0], part):
                made = parts.frames_of(part, stack, ends, direction, shorter, alone=len(fitted) == 1)
            frames += self.finished(part, made, direction)
        networks = self.networks(receiver)
        rhythm = self.rhythm(direction, frame_size, rate_fps, arriving_tags.sent_with(frames))
        return Stream(**rhythm, networks=networks, frames=frames, **order)

    def finished(
        self, part: Part, frames: tuple[DescribedFrame, ...], direction: Direction
    ) -> tuple[DescribedFrame, ...]:
        """The frames of a part, of each size, as the engine gets them."""
        sender, receiver = self.setup.ends(direction)
        with self.refusing(direction.ports[1], part):
            back = arriving_tags.of_back(part, receiver)
        encapsulated = _arrives_encapsulated(part, sender, receiver)
        return tuple(
            one.model_copy(
                update={
                    "arrives_with": arriving_tags.of_described(one, back, receiver),
                    "arrives_encapsulated": encapsulated,
                }
            )
            for one in frames
        )

    def weights_of_sizes(self, path: Direction, frame_size: int) -> Mapping[int, Fraction]:
        if not self.setup.has_sharing:
            return super().weights_of_sizes(path, frame_size)
        each = self.parts_of(path, frame_size)
        of_all, weights = sum(part.share for part in each), defaultdict[int, Fraction](Fraction)
        for part in each:
            for size in part.sizes.order:
                weights[size] += Fraction(part.share, of_all * len(part.sizes.order))
        return weights

    def parts_of(self, direction: Direction, frame_size: int) -> tuple[Part, ...]:
        return parts.parts_of(self.setup, self.conditions, direction, frame_size)

    def ends_of(self, part: Part, direction: Direction) -> Endpoints:
        """The addresses of a part's frames, where its headers leave them open."""
        sender, receiver = self.setup.ends(direction)
        of = native_endpoints if part.native else endpoints
        by = parts.varies_by(part, parts.headers_of(part.text, part.version(sender)))
        return of(sender, receiver, self.networks(receiver), by=by)

    def headers(self, direction: Direction, each: Sequence[Part]) -> Headers:
        """Of each part's frames."""
        sender, _ = self.setup.ends(direction)
        ports = (
            sender.source_port or source_ports(self.conditions.ports),
            sender.destination_port or destination_ports(self.conditions.ports),
        )
        stacks = []
        for part in each:
            with self.refusing(direction.ports[0], part):
                stacks.append(parts.stack_of(part, part.version(sender), ports))
        return tuple(stacks)

    def mixed_by(self) -> Where:
        """What makes the kinds of frames many."""
        each = (one.chosen(self.setup, self.conditions) for one in combinations.KINDS)
        return next(where for where in each if where is not None)

    @contextmanager
    def refusing(self, name: str, part: Part) -> Iterator[None]:
        """An error in the headers of a side's part is one of the option or of the configuration."""
        try:
            yield
        except FrameError as error:
            where = headers_of(self.setup, name) if part.number is None else of_stream(part.number, "frame")
            raise where.refused(str(error)) from None

    def flows_in(self, part: Part) -> Where:
        """Where it was said of how many flows a part is."""
        return Where("flows") if part.number is None else of_stream(part.number, "flows")


def _arrives_encapsulated(part: Part, sender: Side, receiver: Side) -> bool | None:
    """Whether a part's frames arrive in a tunnel; None: nobody can tell, or no side has one. Native frames stay outside
    of tunnels, and headers may be those of a tunnel themselves."""
    if receiver.tunnel is not None:
        return None if part.native else True
    if part.tunnel is None:
        return None
    own = parts.headers_of(part.text, part.version(sender))
    is_tunnel = isinstance(own, Stack) and sum(one.name in ("ipv4", "ipv6") for one in own.headers) > 1
    return None if is_tunnel else False
