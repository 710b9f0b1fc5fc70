# SPDX-License-Identifier: Apache-2.0
"""The options for the tester's ports, of commands that send."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from dutperf.setup import configuration
from dutperf.setup.configuration import MAX_QUEUES

Queues = Annotated[
    int | None,
    typer.Option(
        "--queues",
        metavar="COUNT",
        min=1,
        max=MAX_QUEUES,
        help=(
            "Receive and transmit queues of each port: a direction has as many senders and receivers, on several cores."
            " Default: engine.queues of the configuration, else 1."
        ),
    ),
]
OffloadsText = Annotated[
    str | None,
    typer.Option(
        "--offloads",
        metavar="NAME,...",
        help=(
            f"Hardware offloads to use: {', '.join(get_args(configuration.Offload))}. It is an error if a port"
            " does not support one. No offload has been tested on a NIC yet (docs/performance.md). Default:"
            " engine.offloads of the configuration, else none."
        ),
    ),
]


def offloads(text: str | None) -> configuration.Offloads | None:
    """``"receive_timestamps"`` to ``("receive_timestamps",)``; None where the option was not given.

    Raises:
        ConfigError: an unknown offload.
    """
    return None if text is None else configuration.offloads((name.strip() for name in text.split(",")), "--offloads")
