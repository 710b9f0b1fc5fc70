# SPDX-License-Identifier: Apache-2.0
"""Measurement procedures, one file per clause. :mod:`dutperf.procedures.base` has their common part,
:mod:`dutperf.procedures.bench` the interface to the campaign that runs them.

A new procedure is one file with a :class:`~dutperf.procedures.definition.Definition`, and its name
in ``ALL``; ``make format`` adds it to the list of commands.
"""

from __future__ import annotations

from dutperf.procedures import (
    address_ageing,
    address_capacity,
    address_learning_rate,
    back_to_back,
    broadcast,
    establishment_rate,
    frame_loss,
    ipdv,
    latency,
    load_latency,
    pdv,
    ramp,
    recovery,
    reset,
    soak,
    table_capacity,
    teardown_rate,
    throughput,
    traffic,
)
from dutperf.procedures.definition import Definition

ALL: tuple[Definition, ...] = (
    throughput.PROCEDURE,
    frame_loss.PROCEDURE,
    back_to_back.PROCEDURE,
    latency.PROCEDURE,
    pdv.PROCEDURE,
    ipdv.PROCEDURE,
    recovery.PROCEDURE,
    reset.PROCEDURE,
    ramp.PROCEDURE,
    load_latency.PROCEDURE,
    soak.PROCEDURE,
    traffic.PROCEDURE,
    establishment_rate.PROCEDURE,
    table_capacity.PROCEDURE,
    teardown_rate.PROCEDURE,
    address_capacity.PROCEDURE,
    address_learning_rate.PROCEDURE,
    address_ageing.PROCEDURE,
    broadcast.PROCEDURE,
)
_BY_NAME = {definition.name: definition for definition in ALL}


def find(name: str) -> Definition:
    """The procedure of that name.

    Raises:
        KeyError: there is no such procedure.
    """
    return _BY_NAME[name]
