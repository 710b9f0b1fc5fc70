# SPDX-License-Identifier: Apache-2.0
"""Where the servers of the command line listen."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from dutperf.setup.configuration import ConfigError

LOOPBACK = "127.0.0.1"
LEAST_TOKEN = 16
"""Characters."""
TcpPort = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0: a free one.")]
ListenAddress = Annotated[
    str,
    typer.Option("--address", metavar="ADDRESS", help="Listen there; elsewhere than on loopback, all needs the token."),
]


def listen(address: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that listens; port 0: a free one. ``option`` is the one of the port. Raises ConfigError: nobody may
    listen there, or somebody does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(128)
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot listen on {address}, port {port}: {reason}", option) from None
    return listening


def shown(address: str) -> str:
    """The address as URLs have it."""
    return f"[{address}]" if ":" in address else address


def check_token(token: str | None) -> None:
    """Raises ConfigError where a token is too short."""
    if token is not None and len(token) < LEAST_TOKEN:
        raise ConfigError(f"has fewer than {LEAST_TOKEN} characters", "--token")
