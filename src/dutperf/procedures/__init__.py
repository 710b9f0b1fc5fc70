# SPDX-License-Identifier: Apache-2.0
"""Measurement procedures, one file per clause; what they share stands in
:mod:`dutperf.procedures.base`, what the campaign that conducts them gives them in
:mod:`dutperf.procedures.bench`.

A further procedure is one file with a :class:`~dutperf.procedures.definition.Definition`, and its
name in ``ALL``.
"""

from __future__ import annotations

from dutperf.procedures import back_to_back, frame_loss, ipdv, latency, pdv, recovery, reset, throughput
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
)
_BY_NAME = {definition.name: definition for definition in ALL}


def find(name: str) -> Definition:
    """The procedure of that name.

    Raises:
        KeyError: there is none.
    """
    return _BY_NAME[name]
