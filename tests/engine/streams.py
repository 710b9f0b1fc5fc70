# SPDX-License-Identifier: Apache-2.0
"""Streams and trials for the tests of the engine, as short as can be."""

from __future__ import annotations

from typing import Any

from dutperf.model import FieldMode, FrameSpec, Stream, Trial, VaryingField

ADDRESSES = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:1000::2")}


def frame(version: int, size: int) -> FrameSpec:
    """A frame from left to right."""
    source, destination = ADDRESSES[version]
    return FrameSpec.model_validate({"version": version, "size": size, "source": source, "destination": destination})


def ports(mode: FieldMode, lowest: int = 1024, highest: int = 65535) -> VaryingField:
    """A port field."""
    return VaryingField(mode=mode, min=lowest, max=highest)


def stream(
    version: int = 4, size: int = 128, rate_fps: int = 2000, mode: FieldMode = FieldMode.RANDOM, **members: Any
) -> Stream:
    """A stream whose ports both vary by ``mode``."""
    destination = ports(mode, 1, 49151)
    return Stream(
        rate_fps=rate_fps,
        foreground=frame(version, size),
        source_port=ports(mode),
        destination_port=destination,
        **members,
    )


def trial(forward: Stream | None, reverse: Stream | None = None, **members: Any) -> Trial:
    """A trial of a fifth of a second."""
    defaults: dict[str, Any] = {"trial": 1, "duration_ns": 200_000_000, "drain_ns": 20_000_000, "seed": 1}
    return Trial(forward=forward, reverse=reverse, **(defaults | members))
