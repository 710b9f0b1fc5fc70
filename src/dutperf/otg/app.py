# SPDX-License-Identifier: Apache-2.0
"""The addresses of the Open Traffic Generator API over HTTP, each with the model's messages."""

from __future__ import annotations

import json
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dutperf.errors import DutperfError
from dutperf.otg.generator import Generator
from dutperf.otg.model import Message, Rejected, as_members, messages, of_error, of_members, read
from dutperf.otg.server import MOST_BODY, OPERATIONS, MessageOrFile, Operation
from dutperf.otg.trial_log import CLIENT
from dutperf.web.access import Rules, is_foreign

_LISTS = ("/config/append", "/config/delete")
"""Whose messages are lists over HTTP."""


def make(generator: Generator, rules: Rules) -> Starlette:
    routes = [Route(one.path, _endpoint(generator, one), methods=[one.method]) for one in OPERATIONS]
    return Starlette(
        routes=[*routes, Route("/dutperf/verdicts", _verdicts(generator))],
        middleware=[Middleware(_Guard, rules=rules)],
        exception_handlers={HTTPException: _not_there, DutperfError: _failed, ClientDisconnect: _gone},
    )


def _endpoint(generator: Generator, operation: Operation) -> Any:
    def answered(body: bytes) -> Response:
        return _response(operation.answered(generator, _message(body, operation)))

    async def endpoint(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return _refused(Rejected(f"more than {MOST_BODY:,} bytes", code=413))
        CLIENT.set(request.client.host if request.client else "")
        return await run_in_threadpool(answered, bytes(body))

    return endpoint


def _verdicts(generator: Generator) -> Any:
    """Not of the model."""

    async def verdicts(_request: Request) -> Response:
        return JSONResponse({"trials": await run_in_threadpool(generator.verdicts)})

    return verdicts


def _response(answer: MessageOrFile) -> Response:
    if isinstance(answer, bytes):
        return Response(answer, media_type="application/octet-stream")
    members = as_members(answer)
    if isinstance(answer, messages.Warning):
        members.setdefault("warnings", [])  # where there are none
    return JSONResponse(members)


def _refused(error: Rejected) -> JSONResponse:
    return JSONResponse(as_members(error.message()), error.code)


async def _not_there(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refused(Rejected(f"there is no such address here ({error.detail})", code=error.status_code))


async def _failed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DutperfError)
    return _refused(of_error(error))


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response()  # nobody gets it


def _message(body: bytes, operation: Operation) -> Message:
    """What a body says. Raises Rejected: see :func:`dutperf.otg.model.read`."""
    if operation.request is None:
        return None
    if operation.path not in _LISTS:
        return read(body, operation.request)
    try:
        members = json.loads(body or b"[]")
    except (ValueError, RecursionError) as error:
        raise Rejected(f"the body is no JSON: {error}") from None
    [field] = operation.request.DESCRIPTOR.fields
    return of_members({field.name: members} if isinstance(members, list) else members, operation.request)


class _Guard:
    """Middleware (ASGI): on loopback only its own names are answered, and no page of another origin; elsewhere only
    who has the token, as ``Authorization: Bearer TOKEN`` or as the first part of the address."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        first, _, rest = scope["path"].lstrip("/").partition("/")
        has_token = self._rules.is_token(first)
        if has_token:
            scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        has_token |= self._rules.is_bearer(headers.get("authorization", ""))
        refusal = self._refusal(headers, has_token=has_token)
        await (self._app if refusal is None else _refused(refusal))(scope, receive, send)

    def _refusal(self, headers: Headers, *, has_token: bool) -> Rejected | None:
        if not self._rules.answers_to(headers):
            return Rejected("this server answers to localhost only", code=421)
        if is_foreign(headers):
            return Rejected("a page of another origin has no say here", code=403)
        if not has_token and not self._rules.is_local:
            return Rejected("the token is missing or wrong: use the address that dutperf otg printed", code=401)
        return None
