# SPDX-License-Identifier: Apache-2.0
"""Plain frames: UDP over IP, some of them native IPv6 in the background (RFC 8219 4.1 and 5, RFC 4814 4.5)."""

from __future__ import annotations

from dutperf.model import Direction, Stream
from dutperf.traffic import arriving_tags
from dutperf.traffic.base import TrafficKind
from dutperf.traffic.endpoints import background, foreground
from dutperf.traffic.udp_ports import destination_ports, source_ports


class PlainTraffic(TrafficKind):
    """Frames of one size, UDP directly over IP."""

    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        chosen, (sender, receiver) = self.conditions, self.setup.ends(direction)
        native = background(sender, receiver, frame_size) if chosen.foreground.native_percent > 0 else None
        return Stream(
            **self.rhythm(direction, frame_size, rate_fps),
            foreground=foreground(sender, receiver, frame_size, self.size_ipv4(frame_size)),
            background=native,
            n=chosen.foreground.n,
            m=chosen.foreground.m,
            source_port=sender.source_port or source_ports(chosen.ports),
            destination_port=sender.destination_port or destination_ports(chosen.ports),
            networks=self.networks(receiver),
            source_address=sender.varying_address,
            destination_address=receiver.varying_address,
            arrives_with=arriving_tags.of_plain(receiver),
        )
