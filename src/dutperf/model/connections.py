# SPDX-License-Identifier: Apache-2.0
"""Connections of stateful tests (RFC 9693): what a phase does with them, and what became of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from dutperf.model.value import Count, Direction, Value

MOST_CONNECTIONS = 2**31 - 2**17
"""The largest number of combinations that the engine puts in a pseudorandom order."""


class ConnectionUse(StrEnum):
    """What a phase does with connections (RFC 9693 sections 4.2, 4.5 to 4.7)."""

    OPEN = "open"
    """The Initiator's frames open connections, and the Responder learns their four tuples."""
    TRAFFIC = "traffic"
    """Frames belong to random connections, in both directions."""
    EACH = "each"
    """The Responder sends one frame in each connection."""
    LOST = "lost"
    """The Responder sends one frame in each connection that lost a frame in the phase before."""


class ConnectionOrder(StrEnum):
    """In which order the combinations of ports and addresses become connections."""

    RANDOM = "random"
    INCREASING = "increasing"
    DECREASING = "decreasing"


class Opening(StrEnum):
    """Which connection the Initiator's frame k opens."""

    EACH = "each"
    """Connection k."""
    RANDOM = "random"
    """A random one, possibly one that is open already."""


class ResponderOrder(StrEnum):
    """To which connections the Responder's frames belong, where both sides send."""

    RANDOM = "random"
    IN_ORDER = "in_order"
    DECREASING = "decreasing"
    """In each in turn, from the last one to the first."""
    FIRST = "first"


class Connections(Value):
    """The connections of a phase. Phases with the same ``count``, ``order`` and ``seed``, and the same
    ranges of ports and addresses, have the same connections."""

    use: ConnectionUse
    initiator: Direction
    """The path of the Initiator's frames."""
    count: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)]
    order: ConnectionOrder = ConnectionOrder.RANDOM
    seed: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    opening: Opening = Opening.EACH
    responder: ResponderOrder = ResponderOrder.RANDOM
    entries: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)] | None = None
    """The Responder replies in so many of the connections that it learned, the last ones, and others may be
    missing; None: in all, and none may be missing."""
    version: Literal[4, 6] = 4
    """The IP version at the Responder."""


class ConnectionCounts(Value):
    """The connections at the end of a phase (event.schema.json)."""

    learned: Count
    """In the Responder's state table."""
    remapped: Count
    """Connections whose frames arrived with another address or port than before: the DUT had dropped the
    entry and made another one."""
    lost: Count
    """Connections that lost a frame in this phase."""
