# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic. Each makes the trials of a test setup under conditions, and says what it does not go with: one file
for each kind.

Plain frames, frames of the user's description, connections, each beside :mod:`dutperf.traffic.other_streams`;
questions to a DNS64 server;
:mod:`dutperf.traffic.switches` composes its trials of described frames, and :mod:`dutperf.traffic.replayed` has the
frames of a capture.
"""

from __future__ import annotations

from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.setup.questions import WithQuestions
from dutperf.traffic.base import TrafficKind, stamps
from dutperf.traffic.connections import ConnectionTraffic
from dutperf.traffic.described import DescribedTraffic
from dutperf.traffic.other_streams import PlannedOthers
from dutperf.traffic.parts import is_described
from dutperf.traffic.plain import PlainTraffic
from dutperf.traffic.questions import QuestionTraffic

__all__ = ["ConnectionTraffic", "DescribedTraffic", "PlainTraffic", "QuestionTraffic", "TrafficKind", "of", "stamps"]


def of(setup: Setup, conditions: Conditions) -> TrafficKind:
    """The traffic that these conditions choose. Raises ConfigError: the tester has no port for it."""
    if isinstance(conditions, WithQuestions):
        return QuestionTraffic(setup, conditions)
    if setup.other_name_server:
        raise ConfigError("is missing: with dns64.addresses the tester has one port, for questions alone", "right")
    others = PlannedOthers(setup, conditions)
    if conditions.every.connections is not None:
        return ConnectionTraffic(setup, conditions, others)
    if is_described(conditions.every, setup):
        return DescribedTraffic(setup, conditions, others)
    return PlainTraffic(setup, conditions, others)
