# SPDX-License-Identifier: Apache-2.0
"""TLS of a server that tells clients of plain HTTP why they get nothing else from it."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

from dutperf.otg.model import Rejected, as_members

_NO_TLS = ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER")
"""What OpenSSL says of requests in clear, by their first bytes."""


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The context of a server with this certificate and key (PEM)."""
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class _Object(ssl.SSLObject):
    """One connection. A plain request is answered instead of a handshake, and all else of the client is dropped: the
    client ends the connection, or the time for the handshake does. An end from here could overtake the answer."""

    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO
    is_plain = False

    def do_handshake(self) -> None:
        if not self.is_plain:
            try:
                super().do_handshake()
                return
            except ssl.SSLError as error:
                if error.reason not in _NO_TLS:
                    raise
            self.is_plain = True
            self.outgoing.read()  # an alert of TLS
            self.outgoing.write(_answer())
        self.incoming.read()
        raise ssl.SSLWantReadError


class _Context(ssl.SSLContext):
    sslobject_class = _Object

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *of_tls: Any, **more: Any) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *of_tls, **more)
        assert isinstance(made, _Object)
        made.incoming, made.outgoing = incoming, outgoing
        return made


def _answer() -> bytes:
    """The model's error, as a response of HTTP."""
    error = Rejected("this server speaks TLS: use https:// in its address")
    body = json.dumps(as_members(error.message())).encode()
    head = f"HTTP/1.1 {error.code} Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
