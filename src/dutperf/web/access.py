# SPDX-License-Identifier: Apache-2.0
"""Who may do what.

On loopback anybody who reaches the server may look; elsewhere only who has the token. Nothing is started, stopped or
changed without the token, and never because of a page of another origin. A server on loopback answers only to its own
names, so that no other page can reach it under a name of its own (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 256 * 1024
"""Bytes of a request."""
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; form-action"
    " 'self'; base-uri 'none'"
)
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Rules:
    """Of one server."""

    token: str
    address: str
    """Where it listens."""

    @property
    def cookie(self) -> str:
        """Name of the cookie that has the token. Cookies are of a host, whatever the port: each server has its own."""
        return f"dutperf_token_{hashlib.sha256(self.token.encode()).hexdigest()[:8]}"

    @property
    def is_local(self) -> bool:
        """Whether only this host reaches it."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return self.address == "localhost"

    def is_token(self, given: str) -> bool:
        """Whether it is the token, compared in a time that tells nothing."""
        return hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())

    def is_bearer(self, given: str) -> bool:
        """Whether it is ``Bearer`` and the token."""
        kind, _, text = given.partition(" ")
        return kind.lower() == "bearer" and self.is_token(text)

    def answers_to(self, headers: Headers) -> bool:
        """Whether it is asked by a name of its own: on loopback no other page reaches it under one of theirs."""
        return not self.is_local or _name(headers.get("host", "")) in (*_LOCAL_NAMES, self.address)


class Access:
    """Middleware (ASGI) that keeps the rules, and limits the size of requests."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        await self._app(scope, _limited(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._rules.answers_to(headers):
            return PlainTextResponse("this server answers to localhost only", 421)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and given:
            return self._login(scope, given)
        has_token = self.has_token(headers)
        scope.setdefault("state", {})["may_control"] = has_token
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and is_foreign(headers):
            return JSONResponse({"error": "a page of another origin has no say here"}, 403)
        if not has_token and (changes or not self._rules.is_local):
            return JSONResponse(
                {"error": "the token is missing or wrong: open the address that dutperf serve printed"}, 401
            )
        if (
            changes
            and int(
                headers.get("content-length", "0") or 0
                if headers.get("content-length", "0").isdigit()
                else MOST_BODY + 1
            )
            > MOST_BODY
        ):
            return JSONResponse({"error": f"more than {MOST_BODY} bytes"}, 413)
        return None

    def has_token(self, headers: Headers) -> bool:
        """Whether the request has the token: as a cookie, or as ``Authorization: Bearer TOKEN``."""
        in_cookie = cookie_parser(headers.get("cookie", "")).get(self._rules.cookie, "")
        return self._rules.is_bearer(headers.get("authorization", "")) or self._rules.is_token(in_cookie)

    def _login(self, scope: Scope, given: str) -> Response:
        """The address is the only place for the token that a person can click; it leaves the address at once."""
        if not self._rules.is_token(given):
            return JSONResponse({"error": "the token is wrong"}, 401)
        path = "/" + scope["path"].lstrip("/\\")
        answer = RedirectResponse(path, 303)
        answer.set_cookie(self._rules.cookie, self._rules.token, httponly=True, samesite="strict")
        return answer


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_foreign(headers: Headers) -> bool:
    """Whether a page of another origin asks."""
    origin = headers.get("origin")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    try:
        return origin is not None and urlsplit(origin).netloc != headers.get("host", "")
    except ValueError:
        return True


def _limited(receive: Receive) -> Receive:
    """The body, up to :data:`MOST_BODY`; what is longer ends as if the client had gone."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > MOST_BODY else message

    return limited


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            headers.setdefault("Content-Security-Policy", POLICY)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Referrer-Policy", "no-referrer")
            headers.setdefault("Cache-Control", "no-store")
            message["headers"] = headers.raw
        await send(message)

    return with_headers
