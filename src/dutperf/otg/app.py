# SPDX-License-Identifier: Apache-2.0
"""The addresses of the Open Traffic Generator API over HTTP, each with the model's messages."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dutperf.errors import DutperfError
from dutperf.otg import coverage
from dutperf.otg.generator import Generator
from dutperf.otg.model import SPECIFICATION, Message, Rejected, as_members, chosen, messages, name_of, of_members, read
from dutperf.version import __version__
from dutperf.web.access import Rules, is_foreign

MOST_BODY = 16 * 1024 * 1024
"""Bytes of a request."""
_ANY_VERSION = ">=1.0.0"
"""Clients take the server's version as a condition on their own."""


@dataclass(frozen=True)
class OtgServer:
    """What the addresses answer."""

    generator: Generator

    def set_config(self, body: bytes) -> Response:
        return _warned(self.generator.set_configuration(read(body, messages.Config)))

    def get_config(self, _body: bytes) -> Response:
        return JSONResponse(as_members(self.generator.configuration))

    def update_config(self, body: bytes) -> Response:
        return _warned(self.generator.update(read(body, messages.ConfigUpdate)))

    def append_config(self, body: bytes) -> Response:
        return _warned(self.generator.append(_listed(body, messages.ConfigAppend, "config_append_list")))

    def delete_config(self, body: bytes) -> Response:
        return _warned(self.generator.delete(_listed(body, messages.ConfigDelete, "config_delete_list")))

    def control_state(self, body: bytes) -> Response:
        return _warned(controlled(self.generator, read(body, messages.ControlState)))

    def control_action(self, body: bytes) -> Response:
        coverage.check(read(body, messages.ControlAction))
        raise Rejected("actions are not covered", code=501)

    def metrics(self, body: bytes) -> Response:
        return _answer(measured(self.generator, read(body, messages.MetricsRequest)))

    def states(self, body: bytes) -> Response:
        return _answer(stated(self.generator, read(body, messages.StatesRequest)))

    def capture(self, body: bytes) -> Response:
        request = read(body, messages.CaptureRequest)
        coverage.check(request)
        return Response(self.generator.captured(request.port_name), media_type="application/octet-stream")

    def version(self, _body: bytes) -> Response:
        return _answer(
            messages.Version(api_spec_version=_ANY_VERSION, sdk_version=SPECIFICATION, app_version=__version__)
        )

    def verdicts(self, _body: bytes) -> Response:
        return JSONResponse({"trials": self.generator.verdicts()})


ADDRESSES = (
    ("POST", "/config", OtgServer.set_config),
    ("GET", "/config", OtgServer.get_config),
    ("PATCH", "/config", OtgServer.update_config),
    ("PATCH", "/config/append", OtgServer.append_config),
    ("PATCH", "/config/delete", OtgServer.delete_config),
    ("POST", "/control/state", OtgServer.control_state),
    ("POST", "/control/action", OtgServer.control_action),
    ("POST", "/monitor/metrics", OtgServer.metrics),
    ("POST", "/monitor/states", OtgServer.states),
    ("POST", "/monitor/capture", OtgServer.capture),
    ("GET", "/capabilities/version", OtgServer.version),
    ("GET", "/dutperf/verdicts", OtgServer.verdicts),
)
"""All but the last are the model's."""


def controlled(generator: Generator, wanted: Message) -> list[str]:
    """Change the state of flows or captures. Returns warnings.

    Raises:
        Rejected: it is not possible.
    """
    coverage.check(wanted)
    kind = chosen(wanted)
    if kind == "traffic" and wanted.traffic.HasField("flow_transmit"):
        transmit = wanted.traffic.flow_transmit
        if not transmit.HasField("state"):
            raise Rejected("traffic.flow_transmit.state is missing")
        return generator.transmit(name_of(transmit, "state"), list(transmit.flow_names))
    if kind == "port" and wanted.port.HasField("capture"):
        capture = wanted.port.capture
        if not capture.HasField("state"):
            raise Rejected("port.capture.state is missing")
        return generator.capture(name_of(capture, "state"), list(capture.port_names))
    if kind == "protocol":
        return ["protocol.all: devices answer ARP and Neighbour Discovery from the configuration on"]
    raise Rejected("the state says nothing of flows, captures or protocols")


def measured(generator: Generator, wanted: Message) -> Message:
    """The metrics of flows or ports. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    kind = chosen(wanted, "port")
    found = messages.MetricsResponse(choice=messages.MetricsResponse.Choice.Enum.Value(f"{kind}_metrics"))
    if kind == "flow":
        each = generator.flow_metrics(list(wanted.flow.flow_names))
        found.flow_metrics.extend(_only(one, wanted.flow, "metric_names") for one in each)
    else:
        each = generator.port_metrics(list(wanted.port.port_names))
        found.port_metrics.extend(_only(one, wanted.port, "column_names") for one in each)
    return found


def _only(metric: Message, wanted: Message, names: str) -> Message:
    """The columns that were asked for, and by what a metric is known; none: all."""
    enum = wanted.DESCRIPTOR.fields_by_name[names].enum_type
    asked = {enum.values_by_number[number].name for number in getattr(wanted, names)}
    for field, _ in metric.ListFields() if asked else ():
        if field.name not in asked and field.name not in ("name", "port_tx", "port_rx"):
            metric.ClearField(field.name)
    return metric


def stated(generator: Generator, wanted: Message) -> Message:
    """The neighbours of devices. Raises Rejected: it is not possible."""
    coverage.check(wanted)
    kind = chosen(wanted, "ipv4_neighbors")
    found = messages.StatesResponse(choice=messages.StatesResponse.Choice.Enum.Value(kind))
    version = 4 if kind == "ipv4_neighbors" else 6
    for ethernet, address, mac in generator.neighbours(version, list(getattr(wanted, kind).ethernet_names)):
        one = getattr(found, kind).add(ethernet_name=ethernet)
        setattr(one, f"ipv{version}_address", address)
        if mac:
            one.link_layer_address = mac
    return found


def make(server: OtgServer, rules: Rules) -> Starlette:
    """The application (ASGI)."""
    return Starlette(
        routes=[Route(path, _endpoint(server, answer), methods=[method]) for method, path, answer in ADDRESSES],
        middleware=[Middleware(_Guard, rules=rules)],
        exception_handlers={HTTPException: _not_there},
    )


def _endpoint(server: OtgServer, answer: Callable[[OtgServer, bytes], Response]) -> Any:
    async def endpoint(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return _refusal(Rejected(f"more than {MOST_BODY:,} bytes", code=413))
        try:
            return await run_in_threadpool(answer, server, bytes(body))
        except Rejected as error:
            return _refusal(error)
        except DutperfError as error:
            return _refusal(Rejected(error.sentence, code=500, kind="internal"))

    return endpoint


def _answer(message: Message) -> Response:
    return JSONResponse(as_members(message))


def _warned(warnings: list[str]) -> Response:
    return JSONResponse({"warnings": warnings})


def _refusal(error: Rejected) -> JSONResponse:
    return JSONResponse(as_members(error.message()), error.code)


async def _not_there(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refusal(Rejected(f"there is no such address here ({error.detail})", code=error.status_code))


def _listed(body: bytes, kind: Any, name: str) -> Message:
    """Over HTTP these messages are lists."""
    try:
        members = json.loads(body or b"[]")
    except (ValueError, RecursionError) as error:
        raise Rejected(f"the body is no JSON: {error}") from None
    return of_members({name: members} if isinstance(members, list) else members, kind)


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
        has_token = hmac.compare_digest(first.encode("utf-8", "replace"), self._rules.token.encode())
        if has_token:
            scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        given = headers.get("authorization", "").removeprefix("Bearer ").strip()
        has_token |= hmac.compare_digest(given.encode("utf-8", "replace"), self._rules.token.encode())
        refusal = self._refusal(headers, has_token=has_token)
        await (self._app if refusal is None else _refusal(refusal))(scope, receive, send)

    def _refusal(self, headers: Headers, *, has_token: bool) -> Rejected | None:
        if not self._rules.answers_to(headers):
            return Rejected("this server answers to localhost only", code=421)
        if is_foreign(headers):
            return Rejected("a page of another origin has no say here", code=403)
        if not has_token and not self._rules.is_local:
            return Rejected("the token is missing or wrong: use the address that dutperf otg printed", code=401)
        return None
