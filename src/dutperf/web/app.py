# SPDX-License-Identifier: Apache-2.0
"""The addresses of the server: pages for people, and the interface for programs, which the pages use too.

:data:`INTERFACE` has each address of the interface once; the routes and the OpenAPI document are made from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from dutperf.errors import DutperfError
from dutperf.report import html
from dutperf.report.templating import environment
from dutperf.results.measured import moment
from dutperf.version import __version__
from dutperf.web import forms, overview, stored
from dutperf.web.access import Access, Rules
from dutperf.web.errors import Refused, without_directories
from dutperf.web.following import Follower, events
from dutperf.web.overview import Overview
from dutperf.web.runs import UNDER_WAY, Run, Runs, progress
from dutperf.web.stored import Stored, as_json

HERE = Path(__file__).parent
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
MOST_SHOWN = 100
MOST_READERS = 32
"""Streams of events at once: of those who have the token, and as many of those who only look, who cannot keep the
former out."""
_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}


@dataclass(frozen=True)
class Address:
    """Of the interface."""

    path: str
    method: str
    summary: str
    answer: str
    """What the handler is called."""
    body: Mapping[str, Any] | None = None
    """JSON schema; None: it has none."""
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON schema of each parameter."""
    kind: str = "application/json"


_START = {
    "type": "object",
    "description": "a plan, or a procedure with a test setup and options by their names on the command line",
    "properties": {
        "name": {**_TEXT, "description": "part of the directory's name"},
        "plan": {**_TEXT, "description": "a plan for dutperf run, in YAML"},
        "procedure": _TEXT,
        "lab": _TEXT,
        "lab-options": _OBJECT,
        "config": {**_TEXT, "description": "a file in the directory of the test setups"},
        "options": _OBJECT,
    },
    "anyOf": [{"required": ["plan"]}, {"required": ["procedure"]}],
}
_REQUEST = {
    "type": "object",
    "description": "either of both",
    "properties": {
        "rate": {**_TEXT, "description": "per direction: frames/s, or % of the media's maximum"},
        "end": {"type": "boolean"},
    },
}
_LAST_PAGE = 1_000_000
_FILTERS = dict.fromkeys(("dut", "procedure", "since", "series"), _TEXT) | {
    "page": {"type": "integer", "minimum": 1, "maximum": _LAST_PAGE}
}
INTERFACE = (
    Address("/api/runs", "GET", "Runs in the served directories, the latest first", "list_runs"),
    Address("/api/runs", "POST", "Start a plan or a procedure", "start", _START),
    Address("/api/runs/{run}", "GET", "A run: its state and what it does now", "show_run"),
    Address(
        "/api/runs/{run}/events",
        "GET",
        "What the run does: state, trial, progress, log",
        "follow",
        kind="text/event-stream",
    ),
    Address("/api/runs/{run}/stop", "POST", "Interrupt a run; its finished trials stay", "stop", _OBJECT),
    Address("/api/runs/{run}/rate", "POST", "Change the rate of traffic that runs, or end it", "set_rate", _REQUEST),
    Address("/api/runs/{run}/resume", "POST", "Resume a run after its last finished trial", "resume", _OBJECT),
    Address("/api/procedures", "GET", "Procedures with their options", "list_procedures"),
    Address("/api/labs", "GET", "Labs with their options", "list_labs"),
    Address("/api/setups", "GET", "Configurations of test setups that may be chosen", "list_setups"),
    Address("/api/store/measurements", "GET", "Measurements in the store", "search", query=_FILTERS),
    Address("/api/store/measurements/{measurement}", "GET", "A measurement and its figures", "measurement"),
    Address("/api/store/series/{series}", "GET", "A series: its figures over time, with change points", "series"),
    Address("/api/openapi.json", "GET", "This interface", "openapi"),
)


@dataclass
class Server:
    """What the addresses answer."""

    runs: Runs
    places: forms.Places
    store: Stored
    rules: Rules
    is_ending: Callable[[], bool] = lambda: False
    readers: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Streams of events, of those who have the token and of others."""

    # --- pages ---

    def index(self, request: Request) -> Response:
        """The runs, and the form."""
        shown = [self._shown(run) for run in self.runs.all()[:MOST_SHOWN]]
        shown.sort(key=lambda one: one["state"] not in UNDER_WAY)
        size = (overview.WIDTH, overview.HEIGHT)
        return self._page("index.html.j2", request, runs=shown, size=size, setups=self.places.configurations())

    def run_page(self, request: Request) -> Response:
        """A run, live."""
        run = self._shown(self._run(request))
        headlines = [
            {"name": one.name, "html": html.paragraphs(one.headline, f"/runs/{run['id']}/report#deviations")}
            for one in run["overview"].lines
        ]
        return self._page("run.html.j2", request, run=run, headlines=headlines)

    def report(self, request: Request) -> Response:
        return _report(stored.report_in(self._run(request).directory))

    def store_page(self, request: Request) -> Response:
        asked = dict(request.query_params)
        found = self.store.search(asked, _page_number(asked))
        return self._page("store.html.j2", request, asked=asked, **found)

    def measurement_page(self, request: Request) -> Response:
        entry, figures = self.store.measurement(request.path_params["measurement"])
        return self._page("measurement.html.j2", request, one=entry, figures=figures)

    def series_page(self, request: Request) -> Response:
        """The history of a DUT under the same conditions."""
        entries, number, trends = self.store.history(request.path_params["series"])
        return self._page("series.html.j2", request, entries=entries[::-1], number=number, trends=trends)

    def compare_page(self, request: Request) -> Response:
        """Two measurements side by side."""
        asked = request.query_params
        first, second, tables, remarks = self.store.compared(asked.get("base", ""), asked.get("other", ""))
        return self._page("compare.html.j2", request, first=first, second=second, tables=tables, remarks=remarks)

    def stored_report(self, request: Request) -> Response:
        return _report(self.store.report(request.path_params["measurement"]))

    # --- the interface ---

    def list_runs(self, request: Request) -> Response:
        return JSONResponse([self._listed(run) for run in self.runs.all()[:MOST_SHOWN]])

    def show_run(self, request: Request) -> Response:
        run = self._run(request)
        return JSONResponse({**self._listed(run), "progress": progress(run.directory)})

    def start(self, request: Request, asked: Mapping[str, Any]) -> Response:
        by_text = "plan" in asked
        plan = forms.plan_from(asked["plan"], self.places) if by_text else forms.plan_of(asked, self.places)
        try:
            run = self.runs.start(plan, str(asked.get("name") or asked.get("procedure") or "plan"))
        except Refused as error:
            of_options = f"plan: procedures.{asked.get('procedure')}."
            raise Refused(str(error).replace(of_options, "options."), error.status) from None
        return JSONResponse(self._listed(run), 201)

    def stop(self, request: Request, asked: Mapping[str, Any]) -> Response:
        run = self._run(request)
        self.runs.stop(run)
        return JSONResponse(self._listed(run))

    def resume(self, request: Request, asked: Mapping[str, Any]) -> Response:
        checks = (lambda text: forms.plan_from(text, self.places), self.places.within)
        return JSONResponse(self._listed(self.runs.resume(self._run(request), *checks)))

    def set_rate(self, request: Request, asked: Mapping[str, Any]) -> Response:
        run = self._run(request)
        self.runs.ask(run, asked)
        return JSONResponse(self._listed(run))

    async def follow(self, request: Request) -> Response:
        run = self._run(request)
        may_control = bool(request.state.may_control)
        if self.readers[may_control] >= MOST_READERS:
            raise Refused(f"{MOST_READERS} readers follow runs already", 503)
        stream = self._counted(events(Follower(self.runs, run), self.is_ending), may_control)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    def list_procedures(self, request: Request) -> Response:
        return JSONResponse(forms.procedures_offered())

    def list_labs(self, request: Request) -> Response:
        return JSONResponse(forms.labs_offered())

    def list_setups(self, request: Request) -> Response:
        return JSONResponse(self.places.configurations())

    def search(self, request: Request) -> Response:
        asked = dict(request.query_params)
        return JSONResponse(self.store.search(asked, _page_number(asked)))

    def measurement(self, request: Request) -> Response:
        entry, figures = self.store.measurement(request.path_params["measurement"])
        return JSONResponse({**as_json(entry), "figures": [vars(one) for one in figures]})

    def series(self, request: Request) -> Response:
        _, number, trends = self.store.history(request.path_params["series"])
        return JSONResponse({"number": number, "figures": trends})

    def openapi(self, request: Request) -> Response:
        return JSONResponse(document(self.rules.cookie))

    # --- parts ---

    @cached_property
    def _templates(self) -> Any:
        made = environment(HERE / "templates", escape=True)
        made.filters["moment"] = moment
        return made

    def _page(self, template: str, request: Request, **members: Any) -> Response:
        shown = self._templates.get_template(template).render(
            version=__version__, may_control=request.state.may_control, **members
        )
        return HTMLResponse(shown)

    def _run(self, request: Request) -> Run:
        return self.runs.find(request.path_params["run"])

    def _listed(self, run: Run) -> dict[str, Any]:
        return {"id": run.id, "name": run.name, "state": self.runs.state(run), "changed": run.changed}

    def _shown(self, run: Run) -> dict[str, Any]:
        """Of a run in the list."""
        one = self._listed(run)
        if one["state"] in UNDER_WAY:
            return {**one, "overview": Overview(), "now": overview.now(progress(run.directory))}
        return {**one, "overview": self.runs.overview(run), "now": ""}

    async def _counted(self, stream: Any, may_control: bool) -> Any:
        self.readers[may_control] += 1
        try:
            async for text in stream:
                yield text
        finally:
            self.readers[may_control] -= 1


def make(server: Server) -> Starlette:
    """The application (ASGI)."""
    routes: list[BaseRoute] = [
        Route("/", server.index),
        Route("/runs/{run}", server.run_page),
        Route("/runs/{run}/report", server.report),
        Route("/store", server.store_page),
        Route("/store/compare", server.compare_page),
        Route("/store/measurements/{measurement}", server.measurement_page),
        Route("/store/measurements/{measurement}/report", server.stored_report),
        Route("/store/series/{series}", server.series_page),
        *(Route(one.path, _handler(server, one), methods=[one.method]) for one in INTERFACE),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Access, rules=server.rules)],
        exception_handlers=dict.fromkeys((DutperfError, HTTPException, OSError), server_refused(server)),
    )


def server_refused(server: Server) -> Callable[[Request, Exception], Response]:
    """A sentence, as JSON or as a page."""

    def refused(request: Request, error: Exception) -> Response:
        status, text, headers = _refusal(error)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": text}, status, headers)
        page = server._page("error.html.j2", request, text=text)
        page.status_code = status
        page.headers.update(headers or {})
        return page

    return refused


def _refusal(error: Exception) -> tuple[int, str, Mapping[str, str] | None]:
    """Status of HTTP, sentence, and headers."""
    if isinstance(error, Refused):
        return error.status, str(error), None
    if isinstance(error, HTTPException):
        return error.status_code, error.detail, error.headers
    if isinstance(error, OSError):
        where = f" ({Path(os.fsdecode(error.filename)).name})" if isinstance(error.filename, str | bytes) else ""
        return 500, f"the server's system refused it: {error.strerror or error}{where}", None
    return 503 if getattr(error, "is_temporary", False) else 409, without_directories(error), None


def document(cookie: str) -> dict[str, Any]:
    """The interface (OpenAPI 3.1); ``cookie``: the name of that with the token."""
    paths: dict[str, dict[str, Any]] = {}
    for one in INTERFACE:
        names = [part[1:-1] for part in one.path.split("/") if part.startswith("{")]
        parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in one.query.items()
        ]
        refusal = {
            "description": "refused",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        operation: dict[str, Any] = {
            "operationId": one.answer,
            "summary": one.summary,
            "parameters": parameters,
            "responses": {
                "201" if one.answer == "start" else "200": {"description": one.summary, "content": {one.kind: {}}},
                "4XX": refusal,
                "5XX": refusal,
            },
        }
        if one.body is not None:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.body}}}
            operation["security"] = [{"token": []}, {"cookie": []}]
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "dutperf serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
            },
        },
    }


def _handler(server: Server, address: Address) -> Callable[[Request], Any]:
    """Which takes the body as well where the address has one."""
    answer = getattr(server, address.answer)

    async def with_body(request: Request) -> Response:
        return await run_in_threadpool(answer, request, await _body(request))

    return answer if address.body is None else with_body


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused("send application/json", 415)
    try:
        members = json.loads(await request.body() or b"{}")
    except ClientDisconnect:
        raise Refused("too long, or cut off", 413) from None
    except (ValueError, RecursionError):
        raise Refused("it is no JSON") from None
    if not isinstance(members, dict):
        raise Refused("it is no JSON object")
    return members


def _page_number(asked: Mapping[str, str]) -> int:
    text = asked.get("page", "1")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _LAST_PAGE:
        raise Refused(f"page: is not a number from 1 to {_LAST_PAGE:,}")
    return int(text[:9])


def _report(page: bytes) -> Response:
    return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})
